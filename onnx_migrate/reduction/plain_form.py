"""Simpler forms of a whole model, and of single nodes: fewer outputs, attributes, inputs, and notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes, bodies, names_read, values_read
from onnx_migrate.model.interface import unlist_initializers
from onnx_migrate.reduction.bench import Edit, edited
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import Parts, drop_unread, replace_all
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.element_types import CONSTANT_TYPES
from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = [
    "bypassed",
    "fewer_outputs",
    "fewer_settings",
    "inlined",
    "store_constants",
    "with_fixed_sizes",
    "with_initializers",
    "without_notes",
]


def inlined(candidate: Candidate) -> Candidate | None:
    """Return a model without local functions; None if they use another opset."""
    try:
        return candidate.with_model(inline_functions(candidate.model.copy()))
    except CannotMigrate:
        return None


def with_initializers(candidate: Candidate) -> Candidate:
    """Return a model in which initializers stand for the Constants of the main graph, and are not listed as inputs."""
    stored = edited(candidate)
    store_constants(stored.proto)
    return replace(stored, values=candidate.values)


def store_constants(proto: onnx.ModelProto) -> None:
    """Replace the Constants of the main graph by initializers, in place; none is listed as an input."""
    graph = proto.graph
    # Before IR version 4, each initializer is also an input, and a caller may override it.
    proto.ir_version = max(4, proto.ir_version)
    unlist_initializers(graph)
    other_nodes = []
    for node in graph.node:
        tensor = _tensor_of(node)
        if tensor is None:
            other_nodes.append(node)
        else:
            graph.initializer.append(tensor)
            graph.initializer[-1].name = node.output[0]
    replace_all(graph.node, other_nodes)


def _tensor_of(node: onnx.NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant; None for another node, and for a sparse or textual Constant."""
    if node.op_type != "Constant" or not is_onnx(node.domain):
        return None
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
        kind = CONSTANT_TYPES.get(attribute.name)
        if kind in (TensorProto.FLOAT, TensorProto.INT64):
            value = onnx.helper.get_attribute_value(attribute)
            dims = [len(value)] if attribute.name.endswith("s") else []
            return onnx.helper.make_tensor("", kind, dims, value if dims else [value])
    return None


def with_fixed_sizes(candidate: Candidate) -> Candidate | None:
    """Return a model whose inputs have the sizes of the feed, without declared inner types."""
    sized = edited(candidate)
    if candidate.values.stored:  # the recorded values have the types
        del sized.proto.graph.value_info[:]
    fixed = Candidate(sized.model, sized.feed, candidate.values, is_static=True)
    parts = Parts(fixed)
    return parts.part(parts.steps)


def without_notes(candidate: Candidate) -> Candidate:
    """Return a model without texts about its origin, unused imports and unused initializers."""
    plain = edited(candidate)
    proto = plain.proto
    for name in (
        "doc_string",
        "producer_name",
        "producer_version",
        "domain",
        "model_version",
        "metadata_props",
        "training_info",
    ):
        proto.ClearField(name)
    proto.graph.ClearField("doc_string")
    for node in all_nodes(proto):
        for name in ("doc_string", "metadata_props"):
            # Older releases of onnx have nodes without `metadata_props`.
            if name in node.DESCRIPTOR.fields_by_name:
                node.ClearField(name)
    used = {
        "" if is_onnx(node.domain) else node.domain for located in bodies(proto) for node in located.body.node
    } | {""}
    replace_all(
        proto.opset_import,
        [entry for entry in proto.opset_import if ("" if is_onnx(entry.domain) else entry.domain) in used],
    )
    read = values_read(proto.graph, proto.ir_version)
    replace_all(proto.graph.initializer, [entry for entry in proto.graph.initializer if entry.name in read])
    return replace(plain, values=candidate.values)


def fewer_outputs(candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield the model without each of its outputs, if there are several, and without secondary outputs of nodes."""
    graph = candidate.proto.graph
    for index in range(len(graph.output)) if len(graph.output) > 1 else ():
        smaller = edited(candidate)
        del smaller.proto.graph.output[index]
        yield smaller
    used = {name for node in graph.node for name in names_read(node)} | {value.name for value in graph.output}
    for index, node in enumerate(graph.node):
        free = [at for at, name in enumerate(node.output) if at and name and name not in used]
        if free:
            smaller = edited(candidate)
            outputs = smaller.proto.graph.node[index].output
            for at in free:
                outputs[at] = ""
            while outputs and not outputs[-1]:
                del outputs[-1]
            yield smaller


def fewer_settings(candidate: Candidate) -> Iterator[Edit]:
    """Yield edits that drop the optional attributes and inputs of the nodes: first all attributes, then one each."""
    nodes = candidate.proto.graph.node
    attribute_names = [
        (index, name) for index, node in enumerate(nodes) for name in _optional(candidate.proto, node)
    ]
    if len(attribute_names) > 1:
        yield partial(_without, places=attribute_names)
    yield from (partial(_without, places=[pair]) for pair in attribute_names)
    for index, node in enumerate(nodes):
        inputs = (at for at in reversed(range(1, len(node.input))) if node.input[at])
        yield from (partial(_without_input, place=index, at=at) for at in inputs)


def _optional(proto: onnx.ModelProto, node: onnx.NodeProto) -> list[str]:
    """Return the attributes of a node that its operator does not require, by its schema."""
    domain = "" if is_onnx(node.domain) else node.domain
    imports = proto.opset_import
    opset = imported(imports, domain) if domain else onnx_opset(imports, ir_version=proto.ir_version)
    form = signature_at(domain, node.op_type, opset or 1)
    if form is None:
        return []
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    optional = form.attributes.keys() - form.required_attributes
    return [
        attribute.name
        for attribute in node.attribute
        if attribute.type not in graphs and attribute.name in optional
    ]


def _without(candidate: Candidate, places: list[tuple[int, str]]) -> Candidate | None:
    """Return the model without these attributes of nodes; None if it has none of them."""
    nodes = candidate.proto.graph.node
    if not any(attribute.name == name for index, name in places for attribute in nodes[index].attribute):
        return None
    smaller = edited(candidate)
    for index, name in places:
        node = smaller.proto.graph.node[index]
        replace_all(node.attribute, [attribute for attribute in node.attribute if attribute.name != name])
    return smaller


def _without_input(candidate: Candidate, place: int, at: int) -> Candidate:
    """Return the model with one input of a node omitted."""
    smaller = edited(candidate)
    graph = smaller.proto.graph
    inputs = graph.node[place].input
    inputs[at] = ""
    while inputs and not inputs[-1]:
        del inputs[-1]
    drop_unread(graph)
    return smaller


def bypassed(candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield the model without each inner node whose readers can read an input of the same type and shape instead."""
    graph = candidate.proto.graph
    read = [names_read(node) for node in graph.node]
    ends = {value.name for value in graph.output}
    for index, node in enumerate(graph.node):
        output = node.output[0] if node.output else ""
        if output in ends or not any(output in names for names in read):
            continue
        for name in dict.fromkeys(filter(None, node.input)):
            if _alike(candidate, name, output):
                yield _bypassed(candidate, index, name)


def _alike(candidate: Candidate, one: str, other: str) -> bool:
    """Return whether two values have the same type and shape, as recorded."""
    first = candidate.feed.get(one) if one in candidate.feed else candidate.values.array(one)
    second = candidate.values.array(other)
    if first is None or second is None:
        return False
    return bool(first.dtype == second.dtype and first.shape == second.shape)


def _bypassed(candidate: Candidate, place: int, name: str) -> Candidate:
    smaller = edited(candidate)
    graph = smaller.proto.graph
    gone = graph.node[place].output[0]
    del graph.node[place]
    for located in bodies(smaller.proto):
        for node in located.body.node:
            for at, read in enumerate(node.input):
                if read == gone:
                    node.input[at] = name
    drop_unread(graph)
    return smaller
