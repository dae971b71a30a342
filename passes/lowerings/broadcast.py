"""Broadcasting: Expand begins with opset 8, and below, Max, Mean, Min and Sum take tensors of one shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, replace

_MULTIPLIED = (
    TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32,
    TensorProto.UINT64,
)  # fmt: skip
"""The element types of Mul-7."""

_SHOWN = 16
"""Numbers of a shape that a message shows."""

_SMALL = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16)


@lowering("Expand", leaves=8, types=LostTypes.OWN)
def expand_8_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Expand begins with opset 8: Tile repeats the elements, or a broadcasting operator does.

    What changes: where the new shape is a constant and the lengths of the input are fixed, it becomes a Tile. Otherwise the
    input is multiplied by ones of the new shape, which a Tile makes at run time, or compared with True where it is bool.

    Why equal: Tile moves elements. x · 1 is x for every x, NaN, infinities and negative zero included, and so is x and True.

    Limits: for types that are not multiplied, such as strings, the shape must be a constant and the lengths of the input
    must be fixed. Else the element type must be known.
    """
    source = rw.input(0)
    shape = rw.known(rw.input(1))
    if shape is not None:
        own = rw.shape(source)
        if shape.ndim != 1 or (shape < 0).any() or not _broadcasts(own, shape):
            rw.refuse(
                f"cannot be expanded to {_brief(shape)}, which is not a shape that its input"
                f" {list(own) if own is not None else ''} broadcasts to",
                code="invalid-node",
            )
        replace(rw, broadcast(rw, source, [int(size) for size in shape.reshape(-1)]))
    else:
        replace(rw, _multiplied(rw, source, rw.input(1)))


def _broadcasts(own: tuple[int | None, ...] | None, shape: np.ndarray[Any, Any]) -> bool:
    pairs = zip(reversed(own or ()), reversed(shape.tolist()), strict=False)
    return all(a is None or a == b or 1 in (a, b) for a, b in pairs)


def _brief(shape: np.ndarray[Any, Any]) -> str:
    return (
        str(shape.tolist()) if shape.size <= _SHOWN else f"{shape.size} numbers of shape {list(shape.shape)}"
    )


def _multiplied(rw: LoweringRewriter, value: str, shape: str) -> str:
    """Return the product of a value and ones of a shape that is computed at run time."""
    dtype = rw.need_dtype(value)
    kind = TensorProto.INT32 if dtype in _SMALL else dtype
    if dtype not in (*_MULTIPLIED, *_SMALL, TensorProto.BOOL):
        rw.need_constant(1, "shape")
    one = rw.constant(np.ones(1, helper.tensor_dtype_to_np_dtype(kind)), "one")
    zeros = rw.before("Mul", [shape, integers(rw, 0)])
    single = rw.before("Reshape", [one, rw.before("Add", [zeros, integers(rw, 1)])])
    ones = rw.before("Tile", [single, shape], hint="ones")
    if dtype == TensorProto.BOOL:
        return rw.before("And", [value, ones])
    return cast(rw, rw.before("Mul", [cast(rw, value, kind), ones]), dtype)


def broadcast(rw: LoweringRewriter, value: str, shape: Sequence[int]) -> str:
    """Write the value in the shape that it and `shape` broadcast to, without Expand."""
    own = rw.shape(value)
    if own is not None and all(size is not None for size in own):
        return _tiled(rw, value, [size for size in own if size is not None], shape)
    sizes = list(shape)
    for place in range(1, min(len(own or ()), len(shape)) + 1):
        if own is not None and own[-place] == shape[-place]:
            sizes[-place] = 1
    dtype = rw.need_dtype(value)
    if dtype == TensorProto.BOOL:
        return rw.before("And", [value, rw.constant(np.ones(sizes, bool), "true")])
    if dtype not in (*_MULTIPLIED, *_SMALL):
        rw.need_static(value)
    kind = TensorProto.INT32 if dtype in _SMALL else dtype
    ones = rw.constant(np.ones(sizes, helper.tensor_dtype_to_np_dtype(kind)), "ones")
    return cast(rw, rw.before("Mul", [cast(rw, value, kind), ones]), dtype)


def _tiled(rw: LoweringRewriter, value: str, own: Sequence[int], shape: Sequence[int]) -> str:
    result = np.broadcast_shapes(tuple(own), tuple(shape))
    if result == tuple(own):
        return value
    if math.prod(result) == 0:
        return rw.constant(np.zeros(result, rw.numpy_type(value)), "empty")
    padded = [1] * (len(result) - len(own)) + list(own)
    if len(padded) > len(own):
        value = rw.before("Reshape", [value, integers(rw, *padded)])
    repeats = [new // old for new, old in zip(result, padded, strict=True)]
    if all(repeat == 1 for repeat in repeats):
        return value
    return rw.before("Tile", [value, integers(rw, *repeats)])


@lowering("Sum", "Mean", leaves=8)
def sum_8_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Tensors of different shapes are added pair by pair.

    What changes: where the shapes are not known to be equal, Sum becomes a chain of Adds, and Mean that, multiplied by the
    reciprocal of the number of tensors.

    Why equal: ONNX Runtime computes in this order; measured bit for bit.
    """
    if _same_shape(rw):
        return
    total = node.input[0]
    for value in node.input[1:-1]:
        total = rw.before("Add", [total, value])
    last = [total, node.input[-1]]
    if node.op_type == "Mean":
        share = np.array(1, rw.numpy_type(total)) / np.array(len(node.input), rw.numpy_type(total))
        last = [rw.before("Add", last), rw.constant(share, "share")]
    rw.rename("Mul" if node.op_type == "Mean" else "Add")
    node.input[:] = last


@lowering("Max", "Min", leaves=8, exactness=Exactness.EQUIVALENT)
def extreme_8_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Tensors of different shapes are brought to one shape first.

    What changes: where the shapes are not known to be equal, each tensor is repeated to the common shape by a Tile; or
    multiplied by ones of that shape, where a length is only known at run time.

    Why equal: it is what broadcasting means. Of a zero and a negative zero either may be returned, and ONNX Runtime's
    kernels for one shape and for several differ there.

    Limits: where a length is not fixed, the element type must be known.
    """
    if _same_shape(rw):
        return
    shapes = [rw.shape(value) for value in node.input]
    if all(shape is not None and None not in shape for shape in shapes):
        result = np.broadcast_shapes(*(tuple(size or 0 for size in shape or ()) for shape in shapes))
        node.input[:] = [broadcast(rw, value, result) for value in node.input]
        return
    truth = ""
    for value in node.input:
        part = rw.before("Less", [value, value])
        truth = rw.before("Or", [truth, part]) if truth else part
    everywhere = rw.before("Or", [truth, rw.before("Not", [truth])])
    ones = rw.before("Cast", [everywhere], hint="ones", to=rw.need_dtype(node.input[0]))
    node.input[:] = [rw.before("Mul", [value, ones]) for value in node.input]


def _same_shape(rw: LoweringRewriter) -> bool:
    if len(rw.node.input) == 1:
        return True
    shapes = [rw.shape(value) for value in rw.node.input]
    first = shapes[0]
    return first is not None and None not in first and all(shape == first for shape in shapes)
