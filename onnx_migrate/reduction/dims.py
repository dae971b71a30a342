"""Smaller inputs and weights: sizes that occur in a model become 1, 2 or half."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto

from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.reduction.bench import Edit, edited
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import constant_tensor, replace_all
from onnx_migrate.reduction.ports import array_type

__all__ = ["smaller_dims"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

_LARGEST = 1 << 28
"""Bytes of a weight up to which it is read to be made smaller."""


def smaller_dims(candidate: Candidate) -> Iterator[Edit]:
    """Yield edits that make dims smaller: all at once, then a size everywhere, then one axis.

    It yields none for open sizes, and for a model that no runtime here runs: the dims of its values would be unknown.
    """
    if not candidate.is_static or not candidate.values.stored:
        return
    arrays = _arrays(candidate)
    sizes = sorted({size for array in arrays.values() for size in array.shape if size > 1}, reverse=True)
    # A length of 1 broadcasts, which may hide a failure that a length of 2 still shows.
    for smaller in (1, 2):
        yield partial(_everywhere, sizes={size: smaller for size in sizes if size > smaller}, numbers=True)
    for size in sizes:
        for smaller in _smaller(size)[:2]:
            yield partial(_everywhere, sizes={size: smaller}, numbers=True)
            yield partial(_everywhere, sizes={size: smaller}, numbers=False)
    for name, array in arrays.items():
        for axis, size in enumerate(array.shape):
            yield from (partial(_on_axis, name=name, axis=axis, size=smaller) for smaller in _smaller(size))


def _everywhere(candidate: Candidate, sizes: Mapping[int, int], *, numbers: bool) -> Candidate | None:
    """Return the model with other sizes in place of some; with `numbers` also in attributes and shapes."""
    arrays = _arrays(candidate)
    shapes = {name: tuple(sizes.get(size, size) for size in array.shape) for name, array in arrays.items()}
    return _resized(candidate, arrays, shapes, sizes if numbers else {})


def _on_axis(candidate: Candidate, name: str, axis: int, size: int) -> Candidate | None:
    """Return the model with another size of one axis."""
    arrays = _arrays(candidate)
    if name not in arrays or arrays[name].shape[axis] <= size:
        return None
    shape = arrays[name].shape
    return _resized(candidate, arrays, {name: (*shape[:axis], size, *shape[axis + 1 :])}, {})


def _smaller(size: int) -> list[int]:
    return sorted({1, 2, size // 2} - {0, size}) if size > 1 else []


def _arrays(candidate: Candidate) -> dict[str, Array]:
    """Return the inputs and weights of a model, without integers that are sizes of a shape."""
    arrays: dict[str, Array] = {}
    for value in fed_inputs(candidate.proto.graph):
        array = candidate.feed.get(value.name)
        if isinstance(array, np.ndarray):
            arrays[value.name] = array
    for tensor in candidate.proto.graph.initializer:
        array = _weight(candidate, tensor)
        if array is not None and not _is_shape(array):
            arrays[tensor.name] = array
    return arrays


def _weight(candidate: Candidate, tensor: onnx.TensorProto) -> Array | None:
    if not 0 < np.prod(tensor.dims, dtype=np.int64) * 8 <= _LARGEST and tensor.dims:
        return None
    return candidate.model.weights.array(tensor)


def _is_shape(array: Array) -> bool:
    return array.dtype.kind == "i" and array.ndim <= 1


def _resized(
    candidate: Candidate,
    arrays: Mapping[str, Array],
    shapes: Mapping[str, Shape],
    numbers: Mapping[int, int],
) -> Candidate | None:
    """Return the model with inputs and weights cut to these shapes; None if they have them.

    Integers in attributes and shapes change by `numbers`.
    """
    if all(arrays[name].shape == shape for name, shape in shapes.items()):
        return None
    resized = edited(candidate)
    graph, feed = resized.proto.graph, dict(candidate.feed)
    smaller = {name: arrays[name][tuple(map(slice, shape))] for name, shape in shapes.items()}
    for value in fed_inputs(graph):
        if value.name in smaller:
            feed[value.name] = smaller[value.name]
            port = array_type(value.name, smaller[value.name], value.type.tensor_type.elem_type)
            if port is not None:
                value.CopyFrom(port)
    tensors = [_tensor(resized, tensor, smaller, numbers) for tensor in graph.initializer]
    replace_all(graph.initializer, tensors)
    _replace_numbers(graph, numbers)
    return resized.with_model(resized.model, feed)


def _tensor(
    candidate: Candidate, tensor: onnx.TensorProto, smaller: Mapping[str, Array], numbers: Mapping[int, int]
) -> onnx.TensorProto:
    """Return an initializer in its new size, or with other sizes in it."""
    weights = candidate.model.weights
    if tensor.name in smaller:
        array = smaller[tensor.name]
        return (
            tensor
            if list(array.shape) == list(tensor.dims)
            else _like(tensor, constant_tensor(tensor.name, array, weights))
        )
    # Shapes are short vectors of int32 or int64, and other numbers only happen to equal a size.
    if not numbers or not tensor.dims or np.prod(tensor.dims) > 64 or tensor.data_type not in (6, 7):
        return tensor
    array = weights.array(tensor)
    changed = np.array([numbers.get(int(number), int(number)) for number in array.reshape(-1)], array.dtype)
    return constant_tensor(tensor.name, changed.reshape(array.shape), weights)


def _like(tensor: onnx.TensorProto, other: onnx.TensorProto) -> onnx.TensorProto:
    """Return a tensor with the element type of the one that it replaces: NumPy has other types for some."""
    other.data_type = tensor.data_type
    return other


def _replace_numbers(graph: onnx.GraphProto, numbers: Mapping[int, int]) -> None:
    """Replace sizes in attributes that hold integers."""
    for node in graph.node if numbers else ():
        for attribute in node.attribute:
            if attribute.type == AttributeProto.INT:
                attribute.i = numbers.get(attribute.i, attribute.i)
            elif attribute.type == AttributeProto.INTS:
                replaced = [numbers.get(number, number) for number in attribute.ints]
                del attribute.ints[:]
                attribute.ints.extend(replaced)
