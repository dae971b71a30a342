"""Loops that take an axis step by step, and count to the length it had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

import numpy as np
import onnx
from onnx import numpy_helper

from ..domain import Array, Dim
from ..node_context import Place

__all__ = ["count"]

_COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})


def count(place: Place, body: onnx.GraphProto) -> Dim | None:
    """Let a Loop whose body reads a moving axis by its counter go on to the end of it; return that axis.

    Its count is the number of rounds, a state that stays as it is, or a constant that the body compares with.
    """
    makers = {name: node for node in body.node for name in node.output}
    states = {value.name: place.input(index) for index, value in enumerate(body.input[2:], 2)}
    counters = {body.input[0].name, *(name for name, value in states.items() if value and value.dims == ())}
    along = {dim.sizes: dim for dim in _read(place, body, makers, counters)}
    if len(along) != 1:
        return None
    dim = next(iter(along.values()))
    for index in range(len(place.node.input)):
        stays = index == 0 or (index > 1 and _stays(body, index, makers))
        held = place.numbers(index) if stays else None
        if held is not None and held.size == 1 and held.item() == dim.frozen:
            name = _length(place, dim, held)
            place.set_input(index, name, f"count {dim.frozen} → {place.name_of(dim)}, the steps there are")
    for node in body.node:
        if node.op_type in _COMPARISONS and any(_reaches(name, makers, counters) for name in node.input):
            for at, name in enumerate(node.input):
                held = _constant(place, body, makers, name)
                if held is not None and held.size == 1 and held.item() == dim.frozen:
                    place.snapshot()
                    node.input[at] = _length(place, dim, held)
                    place.reasons.append(
                        f"{node.op_type} with {dim.frozen} → {place.name_of(dim)}, the steps there are"
                    )
    return dim


def _read(
    place: Place, body: onnx.GraphProto, makers: Mapping[str, onnx.NodeProto], counters: Set[str]
) -> Iterator[Dim]:
    """Give the moving axes of values from outside of which the body takes one step a round."""
    own = {value.name: index for index, value in enumerate(body.input)}
    for node in body.node:
        if (
            node.op_type != "Gather"
            or node.input[0] in makers
            or not _reaches(node.input[1], makers, counters)
        ):
            continue
        index = own.get(node.input[0])
        value = place.body.value(node.input[0]) if index is None else place.input(index)
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        dim = value.dims[axis] if value is not None and value.dims else None
        if dim is not None and dim.varies and not place.worlds.carries_batch(dim):
            yield dim


def _reaches(name: str, makers: Mapping[str, onnx.NodeProto], counters: Set[str]) -> bool:
    seen, queue = set[str](), [name]
    while queue:
        name = queue.pop()
        if name in counters:
            return True
        if name in makers and name not in seen:
            seen.add(name)
            queue.extend(makers[name].input)
    return False


def _stays(body: onnx.GraphProto, index: int, makers: Mapping[str, onnx.NodeProto]) -> bool:
    name = body.output[index - 1].name
    maker = makers.get(name)
    if maker is not None and maker.op_type == "Identity":
        name = maker.input[0]
    return name == body.input[index].name


def _constant(
    place: Place, body: onnx.GraphProto, makers: Mapping[str, onnx.NodeProto], name: str
) -> Array | None:
    for tensor in body.initializer:
        if tensor.name == name:
            return numpy_helper.to_array(tensor)
    maker = makers.get(name)
    if maker is None:
        return place.rw.constant_value(name) if name not in {value.name for value in body.input} else None
    if maker.op_type != "Constant":
        return None
    held = onnx.helper.get_attribute_value(maker.attribute[0])
    return numpy_helper.to_array(held) if isinstance(held, onnx.TensorProto) else np.asarray(held)


def _length(place: Place, dim: Dim, held: Array) -> str:
    name = place.body.scalar(place.rw, dim, held)
    return (
        place.rw.before("Reshape", [name, place.rw.constant(np.array(held.shape, np.int64), "shape")])
        if held.ndim
        else name
    )
