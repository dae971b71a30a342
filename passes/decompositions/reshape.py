"""Reshape, for which some targets let a 0 in the shape always keep a length."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.decomposition_registry import decomposition
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ..lowerings.reshape import reshape_14_down


@decomposition("Reshape")
def reshape(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`allowzero` goes away: a 0 in the shape keeps the input's length.

    What changes: what its step down from opset 14 changes (`onnx-migrate explain reshape-14-down`), at the opset of the model.

    Why equal: the text of Reshape-14: allowzero says what a 0 means and nothing else.

    Limits: those of the step. A Reshape without allowzero has no other form.
    """
    if not rw.get("allowzero", 0):
        rw.refuse("no other operator does what it does", code="target-lacks")
    reshape_14_down(node, rw)
