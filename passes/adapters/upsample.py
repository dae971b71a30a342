"""Upsample: its scales became an input (opset 9), and Resize replaced it (opset 10)."""

from __future__ import annotations

import math

import onnx

from onnx_migrate.engine.steps.registry import adapter
from onnx_migrate.plural import count_of
from onnx_migrate.rewrite.rewriter import Rewriter

from ..resize.asymmetric import write_asymmetric
from ..resize.inputs import read_scales
from ..resize.origin import ResizeOrigin


@adapter("Upsample", to=7)
def upsample_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`height_scale` and `width_scale` of an NCHW image become a scale per axis, bilinear becomes linear."""
    rank = rw.rank(node.input[0])
    if rank not in (4, None):
        rw.refuse(
            f"its scales are of height and width, but its input has {count_of(rank, 'axis')}",
            code="bad-scales",
            hint="Upsample-1 needs an NCHW image, which has 4",
        )
    rw.set("mode", _mode(rw))
    rw.set("scales", _valid(rw, [1.0, 1.0, float(rw.pop("height_scale")), float(rw.pop("width_scale"))]))


@adapter("Upsample", to=9)
def upsample_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`scales` moves from an attribute to an input."""
    attribute = rw.attribute("scales")
    if attribute is not None and not attribute.ref_attr_name:
        scales, rank = _valid(rw, list(attribute.floats)), rw.rank(node.input[0])
        if rank not in (len(scales), None):
            rw.refuse(
                f"its scales have {count_of(len(scales), 'element')}, but its input has {count_of(rank, 'axis')}",
                code="bad-scales",
                hint="one is required for every axis",
            )
    rw.attribute_to_input("scales", 1)


@adapter("Upsample", to=10)
def upsample_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Upsample is a Resize with asymmetric coordinates that rounds down.

    What changes: the operator, and from opset 11 on the coordinates and the rounding are written out, since
    the defaults there differ (half_pixel, round_prefer_floor).

    Why equal: ONNX Runtime computes both with one kernel, and Upsample with x_original = x / scale and floor
    (upsamplebase.h). Resize-10 rounds up on an axis that shrinks, so a nearest Upsample goes to Resize-11
    in one step, and stays at opset 10 only where no axis shrinks.
    """
    mode = _mode(rw)
    scales = read_scales(rw, node.input[1])
    rw.record_fact(ResizeOrigin(version=9, name=node.name, unchecked=rw.rank(node.input[0]) is None))
    rw.rename("Resize")
    rw.set("mode", mode)
    if rw.target >= 11:
        write_asymmetric(rw, node.input[1], "floor")
        return
    if mode == "nearest" and (scales is None or bool((scales < 1).any())):
        rw.refuse(
            "nearest Upsample rounds down on an axis that may shrink, and Resize-10 rounds up",
            code="no-equal",
            hint="Resize of opset 11 and later can round down: choose one as the target",
        )


def _mode(rw: Rewriter) -> str:
    mode = {"bilinear": "linear"}.get(rw.get("mode", "nearest"), rw.get("mode", "nearest"))
    if mode not in (
        "nearest",
        "linear",
        "cubic",
    ):  # ONNX Runtime runs cubic, though the standard came to it later.
        rw.refuse(
            f"attribute mode has the unknown value {mode!r}",
            code="no-such-mode",
            hint="the standard has nearest and linear",
        )
    return str(mode)


def _valid(rw: Rewriter, scales: list[float]) -> list[float]:
    if not all(0 < scale < math.inf for scale in scales):
        rw.refuse(f"its scales are {scales}", code="bad-scales", hint="each must be finite and above 0")
    return scales
