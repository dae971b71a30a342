"""Softmax, LogSoftmax and Hardmax: below opset 13 they normalise all axes from `axis` on together."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Softmax", "LogSoftmax", "Hardmax", leaves=13, types=LostTypes.ROUNDED)
def softmax_13_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axis` is the first of the axes that are normalised together, so the normalised axis has to be the last.

    What changes: the default of `axis` was -1 and became 1, so it is set. Where another axis than the last is
    normalised, Transposes before and after the node exchange it with the last.

    Why equal: of one last axis, version 11 normalises the same rows (onnx/defs/math/old.cc). Bit for bit in ONNX Runtime.

    Limits: the rank of the input must be known unless `axis` is -1.
    """
    axis = rw.get("axis", -1)
    rw.set("axis", -1)
    if axis == -1:
        return
    source = rw.input(0)
    rank = rw.need_rank(source)
    last = rank - 1
    axis %= max(rank, 1)
    if axis == last or rank == 0:
        return
    perm = list(range(rank))
    perm[axis], perm[last] = last, axis
    node.input[0] = rw.before("Transpose", [source], hint="axis_last", perm=perm)
    name = rw.output(0)
    rw.after("Transpose", [rw.detach_output(0, "axis_last_result")], [name], perm=perm)
    rw.note("the normalised axis is exchanged with the last one before and after")
