"""CumSum and CumProd: a Scan along the axis."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, cast, integers, iota, reduce, replace, size_of, slice_axes
from .selecting import select

_T = TensorProto

_LARGEST_STATE = 4096
"""Elements up to which the first state becomes a constant, if the shape is known."""


@lowering("CumSum", leaves=11)
def cum_sum_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """CumSum begins with opset 11: a Scan adds along the axis.

    What changes: a Scan whose state is the sum so far, along the axis; or along the second of three axes to which the
    input is reshaped, where the axis is computed at run time or the rank is unknown. It begins with -0, which keeps the
    sign of a zero; with 0 where `exclusive` is set, since that is then the first result.

    Why equal: the text. ONNX Runtime adds in the same order: bit for bit.

    Limits: the element type must be known. A tensor that is empty at run time fails in ONNX Runtime, unless its shape says
    so.
    """
    _scan(rw, "Add", -0.0)


@lowering("CumProd", leaves=26)
def cum_prod_26_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """CumProd begins with opset 26: a Scan multiplies along the axis.

    What changes: a Scan as of CumSum, whose state is the product so far, and begins with 1. bfloat16 is multiplied in
    float32 between Casts.

    Why equal: the text; 1 times the first element is that element.

    Limits: the element type must be known. A tensor that is empty at run time fails in ONNX Runtime, unless its shape says
    so.
    """
    _scan(rw, "Mul", 1)


def _scan(rw: LoweringRewriter, operator: str, neutral: float) -> None:
    x = rw.input(0)
    dtype = rw.need_dtype(x)
    if 0 in (rw.shape(x) or ()):
        replace(rw, x)  # empty, as the result is
        return
    known, rank = rw.known(rw.input(1)), rw.rank(x)
    source, along = x, 1
    folded = known is None or not rank
    if known is None or not rank:
        source, rank = _three_axes(rw, x, rw.input(1)), 3
    else:
        along = int(known.reshape(-1)[0]) % rank
    exclusive, reverse = bool(rw.get("exclusive", 0)), int(rw.get("reverse", 0))
    kind = dtype
    if dtype == _T.BFLOAT16:
        kind = _T.FLOAT
        rw.note("bfloat16 is multiplied in float32 between Casts", Exactness.EQUIVALENT)
    first = abs(neutral) if exclusive or kind not in FLOATS else neutral
    state_in, element = rw.fresh("state"), rw.fresh("element")
    state_out, result = rw.fresh("next"), rw.fresh("result")

    def info(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, [None] * (rank - 1))

    body = helper.make_graph(
        [
            helper.make_node(operator, [state_in, element], [state_out], name=rw.fresh("step")),
            helper.make_node(
                "Identity", [state_in if exclusive else state_out], [result], name=rw.fresh("copy")
            ),
        ],
        rw.fresh("accumulate"),
        [info(state_in), info(element)],
        [info(state_out), info(result)],
    )
    shape = rw.shape(source)
    source = cast(rw, source, kind)
    rw.before(
        "Scan",
        [_state(rw, source, along, first, kind), source],
        hint="accumulated",
        outputs=2,
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[along],
        scan_input_directions=[reverse],
        scan_output_axes=[along],
        scan_output_directions=[reverse],
    )
    output = rw.preceding[-1].output[1]
    rw.scope.record_type(output, ValueType(kind, shape))
    result = cast(rw, output, dtype)
    if folded:
        result = rw.before("Reshape", [result, rw.before("Shape", [x])])
    replace(rw, result)


def _three_axes(rw: LoweringRewriter, x: str, axis: str) -> str:
    """Return a value with three axes: those before `axis` as one, `axis`, and those behind it as one."""
    shape = rw.before("Shape", [x])
    rank = size_of(rw, shape, 0)
    place = rw.before("Reshape", [cast(rw, axis, _T.INT64), integers(rw, 1)], hint="axis")
    negative = cast(rw, rw.before("Less", [place, integers(rw, 0)]), _T.INT64)
    place = rw.before("Add", [place, rw.before("Mul", [negative, rank])], hint="axis")
    places, one = iota(rw, rank), integers(rw, 1)
    sizes = []
    for side in ("Less", "Equal", "Greater"):
        chosen = rw.before(side, [places, place], hint="chosen")
        sizes.append(reduce(rw, "ReduceProd", select(rw, chosen, shape, one), [0]))
    three = rw.before("Reshape", [x, rw.before("Concat", sizes, axis=0)], hint="three_axes")
    rw.scope.record_type(three, ValueType(rw.need_dtype(x), (None, None, None)))
    return three


def _state(rw: LoweringRewriter, x: str, axis: int, number: float, kind: int) -> str:
    """Return a tensor of one number in the shape of x without the axis."""
    filled = np.full((1,), number, helper.tensor_dtype_to_np_dtype(kind))
    shape = rw.shape(x)
    if shape is not None:
        rest = [size for place, size in enumerate(shape) if place != axis]
        if None not in rest and math.prod(size or 0 for size in rest) <= _LARGEST_STATE:
            return rw.constant(np.full([size or 0 for size in rest], number, filled.dtype), "state")
    sizes = rw.before("Shape", [x])
    last = np.iinfo(np.int64).max
    parts = [slice_axes(rw, sizes, [axis + 1], [int(last)], [0])]
    if axis:
        parts.insert(0, slice_axes(rw, sizes, [0], [axis], [0]))
    rest_shape = rw.before("Concat", parts, axis=0) if axis else parts[0]
    return rw.before("ConstantOfShape", [rest_shape], hint="state", value=numpy_helper.from_array(filled))
