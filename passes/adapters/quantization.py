"""QuantizeLinear, DequantizeLinear and QLinearMatMul."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _name in ("QuantizeLinear", "DequantizeLinear"):
    compatible(_name, 13, reason="scale and zero point may be of one axis; scalars are not")
    compatible(
        _name,
        21,
        reason="block_size was added, 0 by default; output_dtype, unset, follows the zero point or scale",
    )
    compatible(_name, 24, 25, 28, reason="more types are allowed")
compatible("QuantizeLinear", 23, reason="precision was added; unset, it is the type of the scale, as before")
compatible("DequantizeLinear", 19, reason="float 8 types; the result is of the scale's type, which was float")
compatible(
    "DequantizeLinear", 23, reason="output_dtype was added; unset, it is the type of the scale, as before"
)
compatible("QLinearMatMul", 21, reason="more types are allowed")


@adapter("QuantizeLinear", to=19)
def quantize_linear_19(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Data and scale are of one type, so int32 data, whose scale is a float, is cast to float first.

    What changes: float data stays as it is. From version 23 on the two types may differ again, so a target
    there needs no Cast.

    Why equal: the scale's type says how the division is computed (QuantizeLinear-23); it was always float.
    """
    dtype = rw.dtype(node.input[0])
    if dtype == TensorProto.FLOAT:
        return
    if rw.target >= 23:
        rw.version = 23
        return
    node.input[0] = rw.before("CastLike", list(node.input[:2]), hint="like_scale")
    rw.note("the data is cast to the type of the scale, as both must be of one type")
