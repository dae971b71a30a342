"""Upsample: its scales became an input, and then Resize took its place."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter
from onnx_migrate.model.rewriter import Rewriter

from .resize import explicit


@adapter("Upsample", to=7)
def upsample_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`height_scale` and `width_scale` of an NCHW image become one scale per axis, and bilinear is called linear."""
    scales = [1.0, 1.0, float(rw.pop("height_scale")), float(rw.pop("width_scale"))]
    rw.set("mode", _mode(rw))
    rw.set("scales", scales)


@adapter("Upsample", to=9)
def upsample_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`scales` moves from an attribute to an input."""
    rw.attribute_to_input("scales", 1)


@adapter("Upsample", to=10)
def upsample_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Upsample is a Resize with asymmetric coordinates that rounds down.

    What changes: the operator, and from opset 11 on the coordinates and the rounding are written out, since
    the defaults there are others (half_pixel, round_prefer_floor).

    Why equal: ONNX Runtime computes both with one kernel, and Upsample with x_original = x / scale and floor
    (upsamplebase.h). Resize-10 rounds up on an axis that shrinks, so a nearest Upsample goes to Resize-11
    in one step, and stays at opset 10 only where no axis shrinks.
    """
    mode = _mode(rw)
    rw.rename("Resize")
    rw.set("mode", mode)
    if rw.target >= 11:
        explicit(rw, node.input[1], "floor")
        return
    if mode == "nearest":
        scales = rw.constant_value(node.input[1])
        if scales is None or bool((scales < 1).any()):
            rw.refuse(
                "a nearest Resize-10 rounds up on an axis that shrinks, and Upsample rounds down",
                code="no-equal",
                hint="opset 11 and above can say so",
            )


def _mode(rw: Rewriter) -> str:
    mode = {"bilinear": "linear"}.get(rw.get("mode", "nearest"), rw.get("mode", "nearest"))
    if mode not in ("nearest", "linear"):
        rw.refuse(f"mode is {mode!r}", code="no-such-mode", hint="nearest and linear exist")
    return str(mode)
