"""Repairs Constants. When ONNX Runtime reads a graph, it makes an initializer of each Constant, from its first attribute."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Literal

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TensorProto, numpy_helper

from onnx_migrate.model.graphs import Body, initializer_names, inputs_of_each, node_label
from onnx_migrate.model.mending.tensors import Mending, mend_sparse, mend_tensor
from onnx_migrate.model.validity.attributes import CONSTANT_KINDS, FIELD
from onnx_migrate.model.validity.tensors import Array, tensor_fault
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Place", "mend_constants"]

Place = Literal["graph", "sub-graph", "function"]
"""The position of a body in a model: ONNX Runtime reads the main graph with the fewest checks."""

_NAMES = {kind: name for name, kind in CONSTANT_KINDS.items()}


def mend_constants(body: Body, place: Place, array: Array) -> Iterator[Mending]:
    """Repair the Constants of a body, in place."""
    constants = [node for node in body.node if node.op_type == "Constant" and is_onnx(node.domain)]
    if not constants:
        return
    if place != "sub-graph":
        read = set(chain.from_iterable(inputs_of_each(body.node))) - {""}
        for node in [node for node in constants if _is_broken(node) and read.isdisjoint(node.output)]:
            # An output of a function needs its node, even if the node is broken.
            if isinstance(body, onnx.FunctionProto) and not set(body.output).isdisjoint(node.output):
                continue
            constants.remove(node)
            body.node.remove(node)
            yield Mending(
                node_label(node),
                f"Constant {node_label(node)!r} was removed, as nothing reads it and it is no tensor",
            )
    for node in constants:
        defect = _mend(node, place, array)
        if defect:
            yield Mending(node_label(node), f"Constant {node_label(node)!r} {defect}")
    if place == "graph" and isinstance(body, onnx.GraphProto):
        yield from _repeated(body, constants)


def _is_broken(node: NodeProto) -> bool:
    first = node.attribute[0] if node.attribute else None
    return first is not None and first.type == AttributeProto.TENSOR and tensor_fault(first.t) is not None


def _mend(node: NodeProto, place: Place, array: Array) -> str:
    """Remove all attributes of a Constant except the one that ONNX Runtime reads; return the defect, or "" for none."""
    # The comparison at the end tells whether anything changed.
    before = node.SerializeToString()
    # A reference gets its value from the call.
    if not node.attribute or node.attribute[0].type not in _NAMES or node.attribute[0].ref_attr_name:
        return ""
    defect = ""
    if _only_first(node, place):
        first = node.attribute[0]
        fields = {field.name: content for field, content in first.ListFields()}
        first_fields = {name: fields[name] for name in ("doc_string", FIELD[first.type]) if name in fields}
        name = _NAMES[first.type] if place == "graph" else first.name
        value = AttributeProto(name=name, type=first.type, **first_fields)
        if place == "graph":
            node.ClearField("input")
        node.ClearField("attribute")
        node.attribute.append(value)
        defect = f"is not one value of its type: read as {value.name}, its first attribute" * (
            before != node.SerializeToString()
        )
    first = node.attribute[0]
    if first.type == AttributeProto.TENSOR and first.HasField("t"):
        defect = defect or mend_tensor(first.t, forms=place != "sub-graph")
    elif (
        first.type == AttributeProto.SPARSE_TENSOR
        and place == "graph"
        and mend_sparse(first.sparse_tensor, array)
    ):
        defect = defect or "has an index twice: the last value holds"
    return defect


def _only_first(node: NodeProto, place: Place) -> bool:
    """Return whether ONNX Runtime reads the first attribute and ignores the others; in the main graph it always does.

    In a sub-graph each of the others must be an attribute that a Constant may have. In a function, no other may be a
    value.
    """
    first, others = node.attribute[0], node.attribute[1:]
    own = {field.name for field, _ in first.ListFields()}
    if place == "graph":
        return FIELD[first.type] in own or first.type not in (
            AttributeProto.TENSOR,
            AttributeProto.SPARSE_TENSOR,
        )
    if CONSTANT_KINDS.get(first.name) != first.type or node.input:
        return False
    if place == "sub-graph":
        names = {attribute.name for attribute in node.attribute}
        return len(names) == len(node.attribute) > 1 and all(map(_is_whole, node.attribute))
    return FIELD[first.type] in own and all(
        other.name == first.name or other.name not in CONSTANT_KINDS for other in others
    )


def _is_whole(attribute: AttributeProto) -> bool:
    """Return whether an attribute is one that a Constant may have, with a value of its type and no other."""
    kind = CONSTANT_KINDS.get(attribute.name)
    fields = {field.name for field, _ in attribute.ListFields()}
    return kind == attribute.type and fields <= {"name", "type", "doc_string", FIELD[kind]}


def _repeated(graph: onnx.GraphProto, constants: list[NodeProto]) -> Iterator[Mending]:
    """Convert to an initializer each Constant whose output is also an input, an initializer or another Constant's output."""
    # A value that another node computes cannot become an initializer.
    others = {name for node in graph.node if node.op_type != "Constant" for name in node.output}
    defined = [*initializer_names(graph), *(value.name for value in graph.input)]
    names = [node.output[0] for node in constants if len(node.output) == 1]
    twice = {name for name in names if name and (name in defined or names.count(name) > 1)} - others
    # A list of its own, because the loop removes nodes.
    for node in [node for node in constants if twice.intersection(node.output)]:
        tensor = _tensor(node.attribute[0]) if len(node.attribute) == 1 else None
        if tensor is None or len(node.output) != 1:
            continue
        graph.initializer.add().CopyFrom(tensor)
        graph.initializer[-1].name = node.output[0]
        graph.node.remove(node)
        yield Mending(
            node.output[0],
            f"a Constant writes {node.output[0]!r}, which is an input, an initializer or another Constant too: it holds",
        )


def _tensor(attribute: AttributeProto) -> TensorProto | None:
    """Return the value of a Constant as a tensor; None if it is sparse."""
    if attribute.type == AttributeProto.TENSOR:
        return attribute.t
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return None
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type in (AttributeProto.STRING, AttributeProto.STRINGS):
        return numpy_helper.from_array(np.array(value, object))
    kind = np.float32 if attribute.type in (AttributeProto.FLOAT, AttributeProto.FLOATS) else np.int64
    return numpy_helper.from_array(np.array(value, kind))
