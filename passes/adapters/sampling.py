"""RoiAlign, GridSample and NonMaxSuppression."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("RoiAlign", 22, reason="more types are allowed")
compatible("GridSample", 22, reason="more types are allowed")
compatible(
    "NonMaxSuppression",
    11,
    reason="only the description changed: boxes with an overlap above iou_threshold are dropped",
)

_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@adapter("RoiAlign", to=16)
def roi_align_16(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`coordinate_transformation_mode` is set to output_half_pixel, the old behaviour; its default is half_pixel."""
    rw.set("coordinate_transformation_mode", "output_half_pixel")


@adapter("GridSample", to=20)
def grid_sample_20(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The modes bilinear and bicubic are renamed to linear and cubic."""
    mode = rw.get("mode", "bilinear")
    if mode in _MODES:
        rw.set("mode", _MODES[mode])
