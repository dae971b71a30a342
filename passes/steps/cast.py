"""Cast and CastLike."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.formula import LostTypes, Op, Value, formula
from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.element_types import FIRST_OPSET, type_name

compatible("Cast", 9, reason="strings are allowed")

compatible("Cast", 13, reason="bfloat16 is allowed, and conversions between numeric types are specified")

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


@lowering("Cast", "CastLike", leaves=24)
def cast_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`round_mode` is dropped: it is for float8e8m0, which does not exist before.

    What changes: the attribute is removed.

    Why equal: the text of version 24 limits `round_mode` to conversions to float8e8m0, which are refused.
    """
    _refuse_missing_type(rw)
    rw.drop("round_mode")


@lowering("Cast", "CastLike", leaves=19)
def cast_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`saturate` is dropped: it is for 8-bit floats, which do not exist before.

    What changes: the attribute is removed.

    Why equal: the text of version 19 limits `saturate` to conversions to 8-bit floats, which are refused.
    """
    _refuse_missing_type(rw)
    rw.drop("saturate")


def _refuse_missing_type(rw: LoweringRewriter) -> None:
    to = rw.get("to") if rw.node.op_type == "Cast" else rw.dtype(rw.input(1))
    if to is not None and FIRST_OPSET.get(to, 1) > rw.version:
        rw.refuse(
            f"it casts to {type_name(to)}, which does not exist below opset {FIRST_OPSET[to]}",
            code="no-such-type",
            hint="convert the model to another element type first",
        )


@formula("CastLike", since=15, types=LostTypes.OWN)
def cast_like(op: Op, x: Value, like: Value) -> Value:
    """CastLike begins with opset 15: Cast names the element type.

    Why equal: it is the function body of CastLike.
    """
    return op.Cast(x, to=like.need_dtype())
