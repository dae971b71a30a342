"""Cast and CastLike: their attributes for 8-bit floats, and CastLike below opset 15."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.element_types import FIRST_OPSET, type_name


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


@lowering("CastLike", leaves=15, types=LostTypes.OWN)
def cast_like_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """CastLike begins with opset 15: Cast names the element type.

    What changes: `to` is the element type of the second input, which is no longer read.

    Why equal: it is the function body of CastLike.

    Limits: the element type of the second input must be known.
    """
    to = rw.need_dtype(rw.input(1))
    rw.rename("Cast")
    rw.set_input(1, "")
    rw.set("to", to)


def _refuse_missing_type(rw: LoweringRewriter) -> None:
    to = rw.get("to") if rw.node.op_type == "Cast" else rw.dtype(rw.input(1))
    if to is not None and FIRST_OPSET.get(to, 1) > rw.version:
        rw.refuse(
            f"it casts to {type_name(to)}, which does not exist below opset {FIRST_OPSET[to]}",
            code="no-such-type",
            hint="convert the model to another element type first",
        )
