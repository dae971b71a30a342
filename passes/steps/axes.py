"""Axes counted from the end: below opset 11 the standard's texts have none."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_ASSUMED = "runtimes are assumed to take a negative axis below opset 11, since the rank is unknown"


@lowering(
    "ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Hardmax", "LogSoftmax", "Softmax", "Split", leaves=11
)  # fmt: skip
def axis_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axis` is counted from the front.

    What changes: a negative axis is replaced by the same one counted from the front.

    Why equal: the changelog of version 11 adds negative axes and nothing else.

    Limits: where the rank is unknown, a negative axis stays, and the report says so; ONNX Runtime takes it at opset 10 in all
    of these operators but Flatten, which is refused.
    """
    axis = rw.get("axis")
    if axis is None or axis >= 0:
        return
    source = rw.input(0)
    rank = rw.need_rank(source) if node.op_type == "Flatten" else rw.rank(source)
    if rank is None:
        rw.note(_ASSUMED, Exactness.ASSUMED)
        return
    rw.set("axis", axis + rank)


@lowering(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Squeeze", "Unsqueeze", leaves=11,
)  # fmt: skip
def axes_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` are counted from the front, in ascending order.

    What changes: negative axes are replaced by the same ones counted from the front, and the axes are sorted.

    Why equal: the changelog of version 11 adds negative axes and nothing else. The order of axes has no meaning; the shape
    inference of Squeeze-1 in older releases of onnx, which runtimes hold, is right for ascending ones alone.

    Limits: where the rank is unknown, negative axes stay, and the report says so; ONNX Runtime takes them at opset 10.
    """
    axes = rw.get("axes")
    if axes is None:
        return
    if all(axis >= 0 for axis in axes):
        if axes != sorted(axes):
            rw.set("axes", sorted(axes))
        return
    rank = rw.rank(rw.input(0))
    if rank is None:
        rw.note(_ASSUMED, Exactness.ASSUMED)
        return
    if node.op_type == "Unsqueeze":
        rank += len(axes)
    rw.set("axes", sorted(axis + rank if axis < 0 else axis for axis in axes))
