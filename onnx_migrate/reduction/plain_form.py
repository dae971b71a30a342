"""Simpler forms of a whole model, and of single nodes: fewer outputs, attributes, inputs, and notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import onnx
from onnx import AttributeProto

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import all_nodes, bodies, initializer_names, names_read, values_read
from onnx_migrate.model.interface import unlist_initializers
from onnx_migrate.reduction.bench import Edit, edited
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import Parts, replace_all
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.schema import is_onnx

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
    found = edited(candidate)
    store_constants(found.proto)
    return replace(found, values=candidate.values)


def store_constants(proto: onnx.ModelProto) -> None:
    """Replace the Constants of the main graph by initializers, in place; none is listed as an input."""
    graph = proto.graph
    proto.ir_version = max(4, proto.ir_version)
    unlist_initializers(graph)
    kept = []
    for node in graph.node:
        tensor = _tensor_of(node)
        if tensor is None:
            kept.append(node)
        else:
            graph.initializer.append(tensor)
            graph.initializer[-1].name = node.output[0]
    replace_all(graph.node, kept)


def _tensor_of(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return the tensor of a Constant; None for another node, and for a sparse or textual Constant."""
    if node.op_type != "Constant" or not is_onnx(node.domain):
        return None
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t
        kinds = {
            "value_float": onnx.TensorProto.FLOAT, "value_floats": onnx.TensorProto.FLOAT,
            "value_int": onnx.TensorProto.INT64, "value_ints": onnx.TensorProto.INT64,
        }  # fmt: skip
        if attribute.name in kinds:
            value = onnx.helper.get_attribute_value(attribute)
            dims = [len(value)] if attribute.name.endswith("s") else []
            return onnx.helper.make_tensor("", kinds[attribute.name], dims, value if dims else [value])
    return None


def with_fixed_sizes(candidate: Candidate) -> Candidate | None:
    """Return a model whose inputs have the sizes of the feed, without declared inner types."""
    found = edited(candidate)
    if candidate.values.stored:  # the recorded values have the types
        del found.proto.graph.value_info[:]
    fixed = Candidate(found.model, found.feed, candidate.values, is_static=True)
    parts = Parts(fixed)
    return parts.part(parts.steps)


def without_notes(candidate: Candidate) -> Candidate:
    """Return a model without texts about its origin, unused imports and unused initializers."""
    found = edited(candidate)
    proto = found.proto
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
            if name in node.DESCRIPTOR.fields_by_name:
                node.ClearField(name)
    used = {
        "" if is_onnx(node.domain) else node.domain for located in bodies(proto) for node in located.body.node
    } | {""}
    replace_all(
        proto.opset_import,
        [item for item in proto.opset_import if ("" if is_onnx(item.domain) else item.domain) in used],
    )
    read = values_read(proto.graph, proto.ir_version)
    replace_all(proto.graph.initializer, [item for item in proto.graph.initializer if item.name in read])
    return replace(found, values=candidate.values)


def fewer_outputs(candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield the model without each of its outputs, if there are several, and without secondary outputs of nodes."""
    graph = candidate.proto.graph
    for place in range(len(graph.output)) if len(graph.output) > 1 else ():
        found = edited(candidate)
        del found.proto.graph.output[place]
        yield found
    used = {name for node in graph.node for name in names_read(node)} | {value.name for value in graph.output}
    for place, node in enumerate(graph.node):
        free = [at for at, name in enumerate(node.output) if at and name and name not in used]
        if free:
            found = edited(candidate)
            outputs = found.proto.graph.node[place].output
            for at in free:
                outputs[at] = ""
            while outputs and not outputs[-1]:
                del outputs[-1]
            yield found


def fewer_settings(candidate: Candidate) -> Iterator[Edit]:
    """Yield edits that drop the optional attributes and inputs of the nodes: first all attributes, then one each."""
    nodes = candidate.proto.graph.node
    places = [(place, name) for place, node in enumerate(nodes) for name in _optional(candidate.proto, node)]
    if len(places) > 1:
        yield partial(_without, places=places)
    yield from (partial(_without, places=[pair]) for pair in places)
    for place, node in enumerate(nodes):
        inputs = (at for at in reversed(range(1, len(node.input))) if node.input[at])
        yield from (partial(_without_input, place=place, at=at) for at in inputs)


def _optional(proto: onnx.ModelProto, node: onnx.NodeProto) -> list[str]:
    """Return the attributes of a node that its operator does not require, by its schema."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    version = next(
        (entry.version for entry in proto.opset_import if is_onnx(entry.domain) == is_onnx(node.domain)), 1
    )
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "" if is_onnx(node.domain) else node.domain)
    except onnx.defs.SchemaError:
        return []
    known = schema.attributes
    named = (item for item in node.attribute if item.type not in graphs and item.name in known)
    return [item.name for item in named if not known[item.name].required]


def _without(candidate: Candidate, places: list[tuple[int, str]]) -> Candidate | None:
    """Return the model without these attributes of nodes; None if it has none of them."""
    nodes = candidate.proto.graph.node
    if not any(item.name == name for place, name in places for item in nodes[place].attribute):
        return None
    found = edited(candidate)
    for place, name in places:
        node = found.proto.graph.node[place]
        replace_all(node.attribute, [item for item in node.attribute if item.name != name])
    return found


def _without_input(candidate: Candidate, place: int, at: int) -> Candidate:
    """Return the model with one input of a node omitted."""
    found = edited(candidate)
    graph = found.proto.graph
    inputs = graph.node[place].input
    inputs[at] = ""
    while inputs and not inputs[-1]:
        del inputs[-1]
    return _without_unread(found)


def _without_unread(candidate: Candidate) -> Candidate:
    """Drop the inputs and initializers that nothing reads, in place."""
    graph = candidate.proto.graph
    read = {name for node in graph.node for name in names_read(node)} | {value.name for value in graph.output}
    replace_all(graph.initializer, [item for item in graph.initializer if item.name in read])
    replace_all(
        graph.sparse_initializer, [item for item in graph.sparse_initializer if item.values.name in read]
    )
    kept = read | initializer_names(graph)
    replace_all(graph.input, [value for value in graph.input if value.name in kept])
    return candidate


def bypassed(candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield the model without each inner node whose readers can read an input of the same type and shape instead."""
    graph = candidate.proto.graph
    read = [names_read(node) for node in graph.node]
    ends = {value.name for value in graph.output}
    for place, node in enumerate(graph.node):
        output = node.output[0] if node.output else ""
        if output in ends or not any(output in names for names in read):
            continue
        for name in dict.fromkeys(filter(None, node.input)):
            if _alike(candidate, name, output):
                yield _bypassed(candidate, place, name)


def _alike(candidate: Candidate, one: str, other: str) -> bool:
    """Return whether two values have the same type and shape, as recorded."""
    first = candidate.feed.get(one) if one in candidate.feed else candidate.values.array(one)
    second = candidate.values.array(other)
    if first is None or second is None:
        return False
    return bool(first.dtype == second.dtype and first.shape == second.shape)


def _bypassed(candidate: Candidate, place: int, name: str) -> Candidate:
    found = edited(candidate)
    graph = found.proto.graph
    gone = graph.node[place].output[0]
    del graph.node[place]
    for located in bodies(found.proto):
        for node in located.body.node:
            for at, read in enumerate(node.input):
                if read == gone:
                    node.input[at] = name
    return _without_unread(found)
