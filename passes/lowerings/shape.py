"""Shape: below opset 15 it gives all lengths."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Shape", leaves=15)
def shape_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`start` and `end` become a Slice of all lengths.

    What changes: where they leave lengths out, a Slice with the same bounds is written after the node.

    Why equal: both clamp their bounds to the number of axes, and both count negative ones from the end.
    """
    import numpy as np

    start, end = rw.pop("start", 0), rw.pop("end")
    if start == 0 and end is None:
        return
    bounds = [
        rw.constant(np.array([bound]), hint)
        for bound, hint in (
            (start, "start"),
            (np.iinfo(np.int64).max if end is None else end, "end"),
            (0, "axis"),
        )
    ]
    name = rw.output(0)
    rw.after("Slice", [rw.detach_output(0, "all"), *bounds], [name])
