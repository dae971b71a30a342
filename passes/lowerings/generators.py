"""Values made from indices: Range, Trilu, EyeLike; and Bernoulli."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, cast, integers, iota, replace, scalar, size_of, unsqueeze
from .selecting import select

_T = TensorProto

_LARGEST_MASK = 1 << 20
"""Elements of a mask up to which it becomes a constant; larger ones are computed from indices."""

_LONGEST_RANGE = 4096
"""Elements of a Range up to which it becomes a constant."""


@lowering("Range", leaves=27, types=LostTypes.OWN)
def range_27_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Range takes no half floats: they are counted in float32 between Casts.

    What changes: the inputs are cast to float32 and the output back; `stash_type`, which is for half floats, is dropped.

    Why equal: the text defines stash_type 1 so.

    Limits: half floats with another `stash_type` than 1 are refused. The element type must be known.
    """
    stash = rw.pop("stash_type", 1)
    dtype = rw.need_dtype(rw.input(0))
    if dtype not in (_T.FLOAT16, _T.BFLOAT16):
        return
    if stash != 1:
        rw.refuse(
            f"attribute stash_type is {stash}, and only 1, float32, has a form below opset 27",
            code="no-equal",
        )
    rw.cast_around([0, 1, 2], [0], _T.FLOAT, dtype)


@lowering("Range", leaves=11)
def range_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Range begins with opset 11.

    What changes: constant inputs give a constant of up to 4096 elements. Of integers, start + i * delta is computed from
    indices i, whose number is an integer division rounded up. Of floats, a Loop adds delta to start.

    Why equal: the text, for integers. For floats the text multiplies, but its function body and ONNX Runtime add up,
    and this gives the same bits as ONNX Runtime, which counts in double.

    Limits: the element type must be known.
    """
    dtype = rw.need_dtype(rw.input(0))
    known = [rw.known(value) for value in node.input]
    if all(array is not None and array.size == 1 for array in known):
        values = _counted(*(array.reshape(-1)[0] for array in known if array is not None))
        if values is not None:
            replace(rw, rw.constant(values, "range"))
            return
    if dtype in FLOATS:
        replace(rw, _added(rw, dtype))
        return
    start, limit, delta = (cast(rw, value, _T.INT64) for value in node.input)
    one, zero = (rw.constant(np.array(number, np.int64), "number") for number in (1, 0))
    distance = rw.before("Sub", [limit, start], hint="distance")
    if known[2] is not None and int(known[2].reshape(-1)[0]) == 1:
        count = distance
    else:
        forward = cast(rw, rw.before("Greater", [delta, zero]), _T.INT64)
        toward = rw.before("Sub", [rw.before("Add", [forward, forward]), one], hint="sign")
        rounded = rw.before("Add", [distance, rw.before("Sub", [delta, toward])])
        count = rw.before("Div", [rounded, delta], hint="count")
    positive = cast(rw, rw.before("Greater", [count, zero]), _T.INT64)
    count = rw.before("Reshape", [rw.before("Mul", [count, positive]), integers(rw, 1)], hint="count")
    steps = rw.before("Mul", [iota(rw, count), delta])
    replace(rw, cast(rw, rw.before("Add", [start, steps], hint="range"), dtype))


def _counted(start: Any, limit: Any, delta: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a Range as ONNX Runtime adds them up, None if they are too many."""
    if delta == 0 or not np.all(np.isfinite([start, limit, delta])):
        return None
    with np.errstate(all="ignore"):
        if start.dtype.kind == "f":
            count = math.ceil((float(limit) - float(start)) / float(delta))
        else:
            count = -((int(start) - int(limit)) // int(delta))
        if count > _LONGEST_RANGE:
            return None
        values = np.empty(max(count, 0), start.dtype)
        for place in range(len(values)):
            values[place] = start
            start = start + delta
    return values


def _added(rw: LoweringRewriter, dtype: int) -> str:
    """Write a Loop that adds delta to start, and stacks what it had before."""
    start, limit, delta = (
        rw.before("Reshape", [value, rw.constant(np.zeros(0, np.int64), "scalar")]) for value in rw.node.input
    )
    first, last, step = (cast(rw, value, _T.DOUBLE) for value in (start, limit, delta))
    quotient = rw.before("Div", [rw.before("Sub", [last, first], hint="distance"), step])
    count = cast(rw, rw.before("Ceil", [quotient]), _T.INT64, hint="count")
    counter, go, sum_in = (rw.fresh(name) for name in ("counter", "go", "sum"))
    going, sum_out, element = (rw.fresh(name) for name in ("going", "next", "element"))

    def info(name: str, kind: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, [])

    body = helper.make_graph(
        [
            helper.make_node("Identity", [go], [going], name=rw.fresh("copy")),
            helper.make_node("Add", [sum_in, delta], [sum_out], name=rw.fresh("add")),
            helper.make_node("Identity", [sum_in], [element], name=rw.fresh("copy")),
        ],
        rw.fresh("add_up"),
        [info(counter, _T.INT64), info(go, _T.BOOL), info(sum_in, dtype)],
        [info(going, _T.BOOL), info(sum_out, dtype), info(element, dtype)],
    )
    true = rw.constant(np.array(True), "true")
    rw.before("Loop", [count, true, start], hint="range", outputs=2, body=body)
    values = rw.preceding[-1].output[1]
    rw.scope.record_type(values, ValueType(dtype, (None,)))
    return str(values)


@lowering("Trilu", leaves=14)
def trilu_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Trilu begins with opset 14: 0 is selected outside of the triangle.

    What changes: Where with a mask; a constant where `k` and the sizes of the last two axes are known, else computed from the
    indices of rows and columns.

    Why equal: the text; the elements of the triangle are moved, not multiplied. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    x, k = rw.input(0), rw.input(1)
    upper = bool(rw.get("upper", 1))
    offset = rw.known(k) if k else np.array(0, np.int64)
    shape = rw.shape(x)
    sizes = None if shape is None else shape[-2:]
    if (
        offset is not None
        and sizes
        and None not in sizes
        and math.prod(s or 0 for s in sizes) <= _LARGEST_MASK
    ):
        rows, columns = (np.arange(size or 0) for size in sizes)
        distance, diagonal = columns[None, :] - rows[:, None], offset.reshape(-1)[0]
        outside = rw.constant(distance < diagonal if upper else distance > diagonal, "outside")
    else:
        row = unsqueeze(rw, iota(rw, size_of(rw, x, -2)), [1])
        column = unsqueeze(rw, iota(rw, size_of(rw, x, -1)), [0])
        distance_value = rw.before("Sub", [column, row], hint="distance")
        diagonal_value = k or rw.constant(np.array(0, np.int64), "diagonal")
        outside = rw.before("Less" if upper else "Greater", [distance_value, diagonal_value], hint="outside")
    replace(rw, select(rw, outside, scalar(rw, 0, x), x))


@lowering("EyeLike", leaves=9)
def eye_like_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """EyeLike begins with opset 9: ones where the column is the row plus `k`.

    What changes: a constant where the shape is known, else Equal of the indices of rows and columns.

    Why equal: the text.

    Limits: the element type must be known if `dtype` does not say it.
    """
    x = rw.input(0)
    dtype = rw.get("dtype")
    dtype = rw.need_dtype(x) if dtype is None else dtype
    k = rw.get("k", 0)
    shape = rw.shape(x)
    if shape is not None and None not in shape and math.prod(s or 0 for s in shape) <= _LARGEST_MASK:
        rows, columns = (size or 0 for size in shape)
        kind = helper.tensor_dtype_to_np_dtype(dtype)
        replace(rw, rw.constant(np.eye(rows, columns, k, dtype=np.int64).astype(kind), "eye"))
        return
    place = unsqueeze(rw, iota(rw, size_of(rw, x, 0)), [1])
    if k:
        place = rw.before("Add", [place, integers(rw, k)])
    column = unsqueeze(rw, iota(rw, size_of(rw, x, 1)), [0])
    rw.rename("Cast")
    rw.drop("dtype", "k")
    rw.set("to", dtype)
    rw.set_input(0, rw.before("Equal", [place, column]))


@lowering("Bernoulli", leaves=15, exactness=Exactness.EQUIVALENT)
def bernoulli_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Bernoulli begins with opset 15: whether a uniform random number is less than the probability.

    What changes: RandomUniformLike and Less, and a Cast to the element type.

    Why equal: it is the function body of Bernoulli. The distribution is the same; the numbers drawn are others.

    Limits: the element type must be known if `dtype` does not say it.
    """
    x = rw.input(0)
    dtype = rw.pop("dtype")
    drawn = rw.before("RandomUniformLike", [x], low=0.0, high=1.0, seed=rw.pop("seed"))
    rw.set_input(0, rw.before("Less", [drawn, x]))
    rw.rename("Cast")
    rw.set("to", rw.need_dtype(x) if dtype is None else dtype)
