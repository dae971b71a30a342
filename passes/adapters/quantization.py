"""QuantizeLinear, DequantizeLinear and QLinearMatMul."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _name in ("QuantizeLinear", "DequantizeLinear"):
    compatible(
        _name, 13, reason="scale and zero point may be vectors along an axis; scalars mean the same as before"
    )
    compatible(
        _name,
        21,
        reason="block_size was added, with default 0; without output_dtype the type is that of the zero point or scale",
    )
    compatible(_name, 24, 25, 28, reason="more types are allowed")
compatible(
    "QuantizeLinear", 23, reason="precision was added; by default it is the type of the scale, as before"
)
compatible(
    "DequantizeLinear",
    19,
    reason="float 8 types are allowed; the result has the type of the scale, which had to be float",
)
compatible(
    "DequantizeLinear", 23, reason="output_dtype was added; by default it is the type of the scale, as before"
)
compatible("QLinearMatMul", 21, reason="more types are allowed")


@adapter("QuantizeLinear", to=19)
def quantize_linear_19(node: onnx.NodeProto, rw: Rewriter) -> None:
    """int32 data is cast to float, the type of the scale, since from opset 19 on both must have one type.

    What changes: float data is unchanged. From opset 23 on the types may differ again, so such a target needs no Cast.

    Why equal: the division is computed in the type of the scale (QuantizeLinear-23), which was always float.
    """
    dtype = rw.dtype(node.input[0])
    if dtype == TensorProto.FLOAT:
        return
    if rw.target >= 23:
        rw.version = 23
        return
    node.input[0] = rw.before("CastLike", list(node.input[:2]), hint="like_scale")
    rw.note("the data is cast to the type of the scale, since both must have one type")
