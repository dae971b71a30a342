"""Cast and CastLike."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Cast", 9, reason="strings are allowed")
compatible("Cast", 13, reason="bfloat16 is allowed, and conversions between numeric types are specified")
compatible("Cast", 21, 23, 25, 28, reason="more types are allowed")
compatible("CastLike", 21, 23, 25, reason="more types are allowed")
for _operator in ("Cast", "CastLike"):
    compatible(_operator, 19, reason="float 8 types are allowed, with saturate, which applies to them only")
    compatible(
        _operator,
        24,
        reason="float8e8m0 is allowed, with round_mode, which applies to it only; infinity saturates in the"
        " FNUZ types too, as ONNX Runtime and onnx.reference computed it before",
    )


@adapter("Cast", to=6)
def cast_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The type `to` is given by its number in TensorProto.DataType in place of its name."""
    name = rw.get("to")
    if name.upper() not in TensorProto.DataType.keys():  # noqa: SIM118 an enum wrapper is no mapping
        rw.refuse(f"attribute to names the unknown type {name!r}", code="invalid-node")
    rw.set("to", TensorProto.DataType.Value(name.upper()))
