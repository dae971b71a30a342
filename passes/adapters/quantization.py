"""QuantizeLinear, DequantizeLinear and QLinearMatMul."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

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
