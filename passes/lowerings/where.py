"""Where: it begins with opset 9."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .selecting import select_without_where


@lowering("Where", leaves=9)
def where_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Where begins with opset 9.

    What changes: of bool, And and Or; of integers, condition * X + (1 - condition) * Y. Of floats and strings, X and Y are
    broadcast and laid one behind the other, and a Gather takes each element from the one that the condition chooses.

    Why equal: elements are moved, or multiplied by 1 and 0 as integers, which wrap around. A sum of products of floats would not
    do, since 0 times infinity is NaN. Equal bit for bit to the standard's text; ONNX Runtime's Where gives +0 for a -0
    of X, and this gives -0.

    Limits: the element type must be known, and of strings the shapes. A tensor of floats whose shape is only known at run time
    must not be empty.
    """
    condition, then, other = node.input
    result = select_without_where(rw, condition, then, other)
    rw.after("Identity", [result], [rw.output(0)])
    rw.remove()
