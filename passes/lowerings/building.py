"""What the decompositions share: constants of a value's type, counted indices, operators whose form depends on the opset.

Everything is written before the node, in the form of opset `rw.version`; the lowering takes it further down from there.
`select` stands in `selecting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = [
    "FLOATS",
    "INTEGERS",
    "cast",
    "integers",
    "iota",
    "reduce",
    "replace",
    "scalar",
    "shape_of",
    "size_of",
    "slice_axes",
    "squeeze",
    "unsqueeze",
]

_T = TensorProto

FLOATS = frozenset((_T.FLOAT16, _T.BFLOAT16, _T.FLOAT, _T.DOUBLE))
INTEGERS = frozenset((_T.INT8, _T.INT16, _T.INT32, _T.INT64, _T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64))

_LONGEST = 4096
"""Elements up to which counted indices become a constant if their number is known."""


def scalar(rw: LoweringRewriter, number: float | bool, like: str, *, shape: Sequence[int] = ()) -> str:
    """Return a constant of the element type of the value `like`, which is refused with `needs-type` if it is unknown."""
    return rw.constant(np.full(tuple(shape), number, rw.numpy_type(like)), "constant")


def integers(rw: LoweringRewriter, *numbers: int) -> str:
    """Return a constant of these int64 numbers, of one axis."""
    return rw.constant(np.array(numbers, np.int64), "integers")


def cast(rw: LoweringRewriter, value: str, to: int, *, hint: str = "cast") -> str:
    """Return the value in an element type: itself where it has that type already."""
    return value if rw.dtype(value) == to else rw.before("Cast", [value], hint=hint, to=to)


def replace(rw: LoweringRewriter, result: str) -> None:
    """Let the node give `result`: it becomes an Identity."""
    rw.rename("Identity")
    rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
    del rw.node.input[1:]
    rw.set_input(0, result)


# Operators whose form depends on the opset


def unsqueeze(rw: LoweringRewriter, value: str, axes: Sequence[int]) -> str:
    """Insert axes of size 1, which must be counted from the front below opset 11."""
    if rw.version >= 13:
        return rw.before("Unsqueeze", [value, integers(rw, *axes)])
    return rw.before("Unsqueeze", [value], axes=list(axes))


def squeeze(rw: LoweringRewriter, value: str, axes: Sequence[int]) -> str:
    """Drop axes of size 1, which must be counted from the front below opset 11."""
    if rw.version >= 13:
        return rw.before("Squeeze", [value, integers(rw, *axes)])
    return rw.before("Squeeze", [value], axes=list(axes))


def reduce(
    rw: LoweringRewriter, operator: str, value: str, axes: Sequence[int], *, keepdims: bool = True
) -> str:
    """Write ReduceSum, ReduceMean or another Reduce over axes, which must be counted from the front below opset 11."""
    if rw.version >= (13 if operator == "ReduceSum" else 18):
        return rw.before(operator, [value, integers(rw, *axes)], keepdims=int(keepdims))
    return rw.before(operator, [value], axes=list(axes), keepdims=int(keepdims))


def slice_axes(
    rw: LoweringRewriter, value: str, starts: Sequence[int], ends: Sequence[int], axes: Sequence[int]
) -> str:
    """Write a Slice with known bounds and steps of 1."""
    if rw.version >= 10:
        bounds = [integers(rw, *starts), integers(rw, *ends), integers(rw, *axes)]
        return rw.before("Slice", [value, *bounds])
    return rw.before("Slice", [value], starts=list(starts), ends=list(ends), axes=list(axes))


# Sizes and indices


def shape_of(rw: LoweringRewriter, value: str) -> str:
    """Return a value's shape, int64 of one axis: a constant if all its dims are fixed."""
    shape = rw.shape(value)
    if shape is not None and all(size is not None for size in shape):
        return integers(rw, *(size for size in shape if size is not None))
    return rw.before("Shape", [value])


def size_of(rw: LoweringRewriter, value: str, axis: int) -> str:
    """Return the size of an axis, int64 of shape [1]; a negative axis needs the rank below opset 10."""
    shape = rw.shape(value)
    if shape is not None and (size := shape[axis]) is not None:
        return integers(rw, size)
    if shape is not None and len(shape) == 1:
        return rw.before("Shape", [value])
    if axis < 0 and (shape is not None or rw.version < 10):
        axis += rw.need_rank(value)
    end = axis + 1 if axis != -1 else np.iinfo(np.int64).max
    return slice_axes(rw, rw.before("Shape", [value]), [axis], [int(end)], [0])


def iota(rw: LoweringRewriter, count: str) -> str:
    """Return the int64 numbers 0, 1, … count - 1, of one axis; `count` is int64 of shape [1]. Bit for bit at all opsets.

    A known count of up to 4096 gives a constant. Others give a Range; for a target of 9 or 10 the places of the ones in a
    tensor of ones; below a Loop that returns its own counter.
    """
    known = rw.known(count)
    if known is not None and int(known.reshape(-1)[0]) <= _LONGEST:
        return rw.constant(np.arange(max(int(known.reshape(-1)[0]), 0), dtype=np.int64), "indices")
    if rw.target < 9:
        return _counter(rw, squeeze(rw, count, [0]))
    if rw.target >= 11:
        zero, one = (rw.constant(np.array(number, np.int64), "number") for number in (0, 1))
        return rw.before("Range", [zero, squeeze(rw, count, [0]), one], hint="indices")
    ones = rw.before("ConstantOfShape", [count], hint="ones", value=_tensor(np.array([1], np.int64)))
    return squeeze(rw, rw.before("NonZero", [ones], hint="places"), [0])


def _tensor(array: np.ndarray[Any, Any]) -> TensorProto:
    from onnx import numpy_helper

    return numpy_helper.from_array(array)


def _counter(rw: LoweringRewriter, count: str) -> str:
    """Write a Loop of `count` rounds that stacks its counter. It carries an idle value, as Loop-1 needs one."""
    counter, go, idle = (rw.fresh(name) for name in ("counter", "go", "idle"))
    going, idled, counted = (rw.fresh(name) for name in ("going", "idled", "counted"))
    body = helper.make_graph(
        [
            helper.make_node("Identity", [source], [result], name=rw.fresh("copy"))
            for source, result in ((go, going), (idle, idled), (counter, counted))
        ],
        rw.fresh("count"),
        [
            helper.make_tensor_value_info(counter, _T.INT64, []),
            helper.make_tensor_value_info(go, _T.BOOL, []),
            helper.make_tensor_value_info(idle, _T.INT64, []),
        ],
        [
            helper.make_tensor_value_info(going, _T.BOOL, []),
            helper.make_tensor_value_info(idled, _T.INT64, []),
            helper.make_tensor_value_info(counted, _T.INT64, []),
        ],
    )
    zero, true = rw.constant(np.array(0, np.int64), "zero"), rw.constant(np.array(True), "true")
    rw.before("Loop", [count, true, zero], hint="indices", outputs=2, body=body)
    indices = rw.preceding[-1].output[1]
    rw.scope.record_type(indices, ValueType(_T.INT64, (None,)))
    return str(indices)
