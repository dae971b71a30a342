"""Repair of Loops that read an axis step by step, with its frozen length as the trip count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import numpy as np
import onnx
from onnx import numpy_helper

from ..domain import Array, Dim
from ..node_context import NodeContext

__all__ = ["repair_trip_count"]

_COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})


def repair_trip_count(context: NodeContext, body: onnx.GraphProto) -> Dim | None:
    """Make a Loop that gathers from a varying axis by its counter iterate to the end of it; return that axis.

    The count is the Loop's trip count, a state that the body does not change, or a constant that the body compares
    the counter with. Returns None if there is no such axis, or several.
    """
    producers = {name: node for node in body.node for name in node.output}
    states = {value.name: context.input(index) for index, value in enumerate(body.input[2:], 2)}
    counters = {body.input[0].name, *(name for name, value in states.items() if value and value.dims == ())}
    along = {dim.sizes: dim for dim in _axes_read(context, body, producers, counters)}
    if len(along) != 1:
        return None
    dim = next(iter(along.values()))
    for index in range(len(context.node.input)):
        stays = index == 0 or (index > 1 and _is_invariant(body, index, producers))
        array = context.integers(index) if stays else None
        if array is not None and array.size == 1 and array.item() == dim.frozen:
            name = _length(context, dim, array)
            context.set_input(
                index,
                name,
                f"trip count {dim.frozen} → {context.name_of(dim)}, the length of the axis that the loop reads",
            )
    for node in body.node:
        if node.op_type in _COMPARISONS and any(
            _depends_on(name, producers, counters) for name in node.input
        ):
            for at, name in enumerate(node.input):
                array = _constant(context, body, producers, name)
                if array is not None and array.size == 1 and array.item() == dim.frozen:
                    node.input[at] = _length(context, dim, array)
                    context.rw.note(
                        f"{node.op_type} with {dim.frozen} → with {context.name_of(dim)}, the length of the axis"
                        " that the loop reads"
                    )
    return dim


def _axes_read(
    context: NodeContext, body: onnx.GraphProto, producers: Mapping[str, onnx.NodeProto], counters: Set[str]
) -> Iterator[Dim]:
    """Yield the varying axes of outer values from which the body gathers one step in each iteration."""
    own = {value.name: index for index, value in enumerate(body.input)}
    for node in body.node:
        if (
            node.op_type != "Gather"
            or node.input[0] in producers
            or not _depends_on(node.input[1], producers, counters)
        ):
            continue
        index = own.get(node.input[0])
        value = context.graph_state.value(node.input[0]) if index is None else context.input(index)
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        dim = value.dims[axis] if value is not None and value.dims else None
        if dim is not None and dim.varies and not context.assignments.carries_batch(dim):
            yield dim


def _depends_on(name: str, producers: Mapping[str, onnx.NodeProto], counters: Set[str]) -> bool:
    seen, queue = set[str](), [name]
    while queue:
        name = queue.pop()
        if name in counters:
            return True
        if name in producers and name not in seen:
            seen.add(name)
            queue.extend(producers[name].input)
    return False


def _is_invariant(body: onnx.GraphProto, index: int, producers: Mapping[str, onnx.NodeProto]) -> bool:
    name = body.output[index - 1].name
    producer = producers.get(name)
    if producer is not None and producer.op_type == "Identity":
        name = producer.input[0]
    return name == body.input[index].name


def _constant(
    context: NodeContext, body: onnx.GraphProto, producers: Mapping[str, onnx.NodeProto], name: str
) -> Array | None:
    for tensor in body.initializer:
        if tensor.name == name:
            return numpy_helper.to_array(tensor)
    producer = producers.get(name)
    if producer is None:
        return context.rw.constant_value(name) if name not in {value.name for value in body.input} else None
    if producer.op_type != "Constant":
        return None
    array = onnx.helper.get_attribute_value(producer.attribute[0])
    return numpy_helper.to_array(array) if isinstance(array, onnx.TensorProto) else np.asarray(array)


def _length(context: NodeContext, dim: Dim, array: Array) -> str:
    name = context.graph_state.emit_length(context.rw, dim, array.dtype)
    return (
        context.rw.before("Reshape", [name, context.rw.constant(np.array(array.shape, np.int64), "shape")])
        if array.ndim
        else name
    )
