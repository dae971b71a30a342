"""Cast: how values outside the range of a small float type are rounded goes with these types."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.element_types import FIRST_OPSET, type_name


@lowering("Cast", leaves=24)
def cast_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`round_mode` is dropped.

    Why equal: it is of the element type float8e8m0 alone, which does not exist below opset 24 and is refused.
    """
    rw.drop("round_mode")
    _refuse_new_type(rw)


@lowering("Cast", leaves=19)
def cast_19_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`saturate` is dropped.

    Why equal: it is of the float 8 types alone, which do not exist below opset 19 and are refused.
    """
    rw.drop("saturate")
    _refuse_new_type(rw)


def _refuse_new_type(rw: LoweringRewriter) -> None:
    dtype = int(rw.get("to"))
    if FIRST_OPSET.get(dtype, 1) > rw.version:
        rw.refuse(
            f"the element type {type_name(dtype)}, its attribute to, does not exist below opset {FIRST_OPSET[dtype]}",
            code="no-such-type",
            hint="convert the model to another element type first",
        )
