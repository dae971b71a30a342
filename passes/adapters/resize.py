"""Resize: from asymmetric coordinates that nobody wrote down, over a roi that nobody read, to today's form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.model.change import Exactness
from onnx_migrate.model.rewriter import Rewriter

compatible("Resize", 18, reason="antialias, axes and keep_aspect_ratio_policy were added; their defaults are the old ways")
compatible("Resize", 19, reason="half_pixel_symmetric was added, and more types for the optional inputs")


@adapter("Resize", to=11)
def resize_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Coordinates are asymmetric, and nearest rounds up on an axis that shrinks and down on one that grows.

    What changes: both are written out, since the defaults from opset 11 on are half_pixel and
    round_prefer_floor. A node has one rounding for all axes, so a nearest Resize that shrinks one axis and grows
    another, or whose scales come at run time, becomes two: first what shrinks, then what grows.

    Why equal: ONNX Runtime's Resize-10 kernel (upsample.h, GetNearestPixelFromOriginal: ceil for scale < 1).

    Limits: a node is copied whole when all its lengths stay as they are. Where the growing half of such a pair
    would be (a scale between 1 and 1 + 1/length), each axis becomes a Gather instead, which asks for a known
    length.
    """
    mode = rw.get("mode", "nearest")
    if mode not in ("nearest", "linear"):
        rw.refuse(f"mode is {mode!r}", code="no-such-mode", hint="nearest and linear exist")
    scales = rw.constant_value(node.input[1])
    if mode == "linear" or (scales is not None and bool((scales >= 1).all())):
        explicit(rw, node.input[1], "floor")
    elif scales is not None and bool((scales <= 1).all()):
        explicit(rw, node.input[1], "ceil")
    elif scales is None:
        one = rw.constant(np.ones(1, np.float32), "one")
        shrink = rw.before("Min", [node.input[1], one], hint="shrink")
        grow = rw.before("Max", [node.input[1], one], hint="grow")
        _pair(rw, shrink, grow)
        rw.note("the scales come at run time, so one node shrinks (rounding up) and one grows (rounding down)")
    elif _growth_is_copied(rw, scales):
        _gather(rw, scales)
    else:
        shrink = rw.constant(np.minimum(scales, np.float32(1)), "shrink")
        grow = rw.constant(np.maximum(scales, np.float32(1)), "grow")
        _pair(rw, shrink, grow)
        rw.note("one node shrinks (rounding up) and one grows (rounding down), because a node has one rounding")


def explicit(rw: Rewriter, scales: str, nearest_mode: str) -> None:
    """Write `rw.node`, of version 10, as a Resize-11, or as a Resize-13 without roi if the model goes there."""
    rw.set("coordinate_transformation_mode", "asymmetric")
    if rw.get("mode", "nearest") == "nearest":
        rw.set("nearest_mode", nearest_mode)
    roi = _no_roi(rw)
    rw.set_input(2, scales)
    rw.set_input(1, roi)
    rw.note("asymmetric coordinates are written out, because the default became half_pixel")


def _no_roi(rw: Rewriter) -> str:
    rw.version = 13 if rw.target >= 13 else 11
    if rw.version == 13:
        return ""
    return rw.constant(np.zeros(0, np.float32), "roi")


def _pair(rw: Rewriter, shrink: str, grow: str) -> None:
    roi = _no_roi(rw)
    small = rw.before(
        "Resize",
        [rw.node.input[0], roi, shrink],
        hint="small",
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="ceil",
    )
    rw.node.input[0] = small
    explicit(rw, grow, "floor")


def _growth_is_copied(rw: Rewriter, scales: npt.NDArray[np.float32]) -> bool:
    """Tell whether no growing axis gets longer, so that the growing node of a pair would copy its input."""
    shape = rw.shape(rw.node.input[0])
    growing = [axis for axis, scale in enumerate(scales) if scale > 1]
    lengths = [shape[axis] if shape is not None else None for axis in growing]
    if any(float(scales[axis]) >= 1.5 for axis in growing):
        return False  # Every length of 2 or more grows, and on a length of 1 there is one index only.
    if any(length is not None and _length(length, scales[axis]) > length for length, axis in zip(lengths, growing, strict=True)):
        return False
    if None in lengths:
        rw.refuse(
            f"shrinks one axis and grows another by less than 1.5 (scales {scales.tolist()}), and the lengths are not known",
            code="needs-shape",
            hint="declare the shape of its input, or fix the model's input dims",
        )
    return True


def _length(length: int, scale: np.float32) -> int:
    return int(np.float32(scale) * np.float32(length))


def _gather(rw: Rewriter, scales: npt.NDArray[np.float32]) -> None:
    shape = rw.shape(rw.node.input[0])
    value, output = rw.node.input[0], rw.node.output[0]
    changed = [axis for axis, scale in enumerate(scales) if scale != 1]
    for axis in changed:
        length = shape[axis] if shape is not None else None
        if length is None:
            rw.refuse("shrinks one axis and barely grows another, and its lengths are not known", code="needs-shape")
        position = np.arange(_length(length, scales[axis]), dtype=np.float32) / scales[axis]
        rounded = np.ceil(position) if scales[axis] < 1 else np.floor(position)
        indices = rw.constant(np.clip(rounded, 0, length - 1).astype(np.int64), f"indices_{axis}")
        if axis == changed[-1]:
            rw.after("Gather", [value, indices], [output], axis=axis)
        else:
            value = rw.before("Gather", [value, indices], hint=f"axis_{axis}", axis=axis)
    rw.remove()
    rw.note("every axis is gathered by its indices, because a Resize that keeps all lengths is a copy")


@adapter("Resize", to=13)
def resize_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`roi` and `scales` may be left out, so what is not read is left out.

    What changes: a roi is kept for tf_crop_and_resize alone, the only mode that reads it. An empty `scales`
    beside `sizes`, and an empty `sizes`, are left out, because from opset 13 on a runtime may take at most one
    of them. The mode tf_half_pixel_for_nn is gone and is written with those that are left.

    Why equal: onnx/defs/tensor/old.cc (Resize-11) against Resize-13; ONNX Runtime reads the roi in
    tf_crop_and_resize only (upsamplebase.h).

    Limits: tf_half_pixel_for_nn rounds at float ties as its kernel did, so the new form is equivalent, not exact.
    """
    mode = rw.get("coordinate_transformation_mode", "half_pixel")
    if mode != "tf_crop_and_resize":
        if rw.input(1):
            rw.note("roi is dropped: only tf_crop_and_resize reads it")
        rw.set_input(1, "")
    if mode == "tf_half_pixel_for_nn":
        _half_pixel_for_nn(rw)
    if rw.input(3):
        if _is_empty(rw, rw.input(3)):
            rw.set_input(3, "")
        elif _is_empty(rw, rw.input(2)):
            rw.set_input(2, "")
            rw.note("scales is left out: sizes says it")
        elif rw.input(2):
            rw.refuse(
                "has scales and sizes, and not one of them is known to be empty",
                code="scales-and-sizes",
                hint="only one of the two may be given",
            )


def _is_empty(rw: Rewriter, value: str) -> bool:
    constant = rw.constant_value(value)
    if constant is not None:
        return constant.size == 0
    return rw.shape(value) == (0,)


def _half_pixel_for_nn(rw: Rewriter) -> None:
    rw.set("coordinate_transformation_mode", "half_pixel")
    if rw.get("mode", "nearest") != "nearest":
        rw.refuse("tf_half_pixel_for_nn is for nearest only", code="no-equal")
    rounding = rw.get("nearest_mode", "round_prefer_floor")
    # x + 0.5 rounded down is x rounded half up, and x + 0.5 rounded half down is x rounded up.
    new = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}.get(rounding)
    if new is None:
        rw.refuse(
            f"tf_half_pixel_for_nn with {rounding} has no equal from opset 13 on",
            code="no-equal",
            hint="stay at opset 12",
        )
    rw.set("nearest_mode", new)
    rw.note(f"half_pixel with {new} computes what tf_half_pixel_for_nn with {rounding} did", Exactness.EQUIVALENT)

