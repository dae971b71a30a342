"""Checks of the attributes and inputs of Upsample and Resize against the standard, before they are rewritten."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnx_migrate.messages import count_of
from onnx_migrate.rewrite.resize.spec import CROP, emptiness
from onnx_migrate.rewrite.rewriter import Rewriter

__all__ = [
    "check_choice",
    "check_count",
    "check_resize",
    "check_scales_or_sizes",
    "check_sizes",
    "is_from_converter",
    "read_scales",
]

_LARGEST = 2.0**31
"""A scale beyond which no axis is short enough for it."""

Floats = npt.NDArray[np.float32]

CHOICES = {
    "mode": ("nearest", "linear", "cubic"),
    "coordinate_transformation_mode": (
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_half_pixel_for_nn",
        "tf_crop_and_resize",
    ),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
}
"""The values that attributes of Resize-11 can have, the default first. ONNX Runtime runs cubic before 11 too."""


def check_choice(rw: Rewriter, name: str) -> str:
    """Return an attribute's value or default; refuse a value that does not exist with code `no-such-mode`."""
    choices = CHOICES[name]
    value = str(rw.get(name, choices[0]))
    if value not in choices:
        rw.refuse(
            f"attribute {name} has the unknown value {value!r}",
            code="no-such-mode",
            hint=f"the standard has {', '.join(choices)}",
        )
    return value


def read_scales(rw: Rewriter, value: str) -> Floats | None:
    """Return scales as a float32 vector, None if they are not constant; refuse invalid ones with `bad-scales`."""
    scales = _read(rw, value, "scales", TensorProto.FLOAT, code="bad-scales")
    if scales is not None and not all(0 < scale <= _LARGEST for scale in scales.tolist()):
        rw.refuse(
            f"its scales are {scales.tolist()}",
            code="bad-scales",
            hint="each must be finite, above 0 and at most 2^31",
        )
    return scales


def check_sizes(rw: Rewriter, value: str) -> None:
    """Refuse invalid sizes with `bad-sizes`."""
    sizes = _read(rw, value, "sizes", TensorProto.INT64, code="bad-sizes")
    if sizes is not None and (sizes < 0).any():
        rw.refuse(f"its sizes are {sizes.tolist()}", code="bad-sizes", hint="none may be negative")


def _read(rw: Rewriter, value: str, what: str, dtype: int, *, code: str) -> npt.NDArray[Any] | None:
    """Return scales or sizes as a vector, None if they are not constant; refuse a wrong type or length."""
    values = rw.constant_value(value)
    # An unknown type (None) may be the right one.
    if rw.dtype(value) not in (dtype, None):
        actual_type, required = (
            TensorProto.DataType.Name(element_type) for element_type in (rw.need_dtype(value), dtype)
        )
        rw.refuse(
            f"its {what} have the type {actual_type}", code=code, hint=f"the standard requires {required}"
        )
    _check_shape(rw, rw.shape(value) if values is None else values.shape, what, code)
    return None if values is None else values.reshape(-1)


def check_scales_or_sizes(rw: Rewriter, *, neither: bool, both: bool) -> None:
    """Refuse a Resize with neither (`no-scales`) or both (`scales-and-sizes`) of scales and sizes."""
    if neither:
        rw.refuse("has neither scales nor sizes", code="no-scales", hint="one of the two must be given")
    if both:
        rw.refuse(
            "has both scales and sizes", code="scales-and-sizes", hint="only one of the two may be given"
        )


def check_resize(rw: Rewriter) -> None:
    """Refuse a Resize-11 or later with a mode, roi, scales or sizes that the standard does not allow."""
    check_choice(rw, "mode")
    if rw.get("coordinate_transformation_mode", "half_pixel") == CROP and rw.input(1):
        check_count(rw, rw.input(1), "roi", code="bad-roi")
    no_scales, no_sizes = emptiness(rw, rw.input(2)), emptiness(rw, rw.input(3))
    both = no_scales is False and no_sizes is False
    check_scales_or_sizes(rw, neither=bool(no_scales and no_sizes), both=both)
    if no_scales is False:
        read_scales(rw, rw.input(2))
    elif no_sizes is False:
        check_sizes(rw, rw.input(3))


def is_from_converter(rw: Rewriter) -> bool:
    """Return whether onnx's version converter wrote a node for an older Resize: roi [0…, 1…] and no coordinates.

    The node computes half_pixel; the older one computed asymmetric. No exporter writes such a roi
    without tf_crop_and_resize beside it.
    """
    if not rw.input(1) or rw.attribute("coordinate_transformation_mode") or rw.attribute("nearest_mode"):
        return False
    roi = rw.constant_value(rw.input(1))
    if roi is None or roi.ndim != 1 or not roi.size or roi.size % 2:
        return False
    half = roi.size // 2
    return bool((roi[:half] == 0).all() and (roi[half:] == 1).all())


def check_count(rw: Rewriter, value: str, what: str, *, code: str) -> None:
    """Refuse scales, sizes or a roi of a wrong number of elements, if the right one is known, with this code.

    One is required for every resized axis, of a roi a start and an end.
    """
    values = rw.constant_value(value)
    _check_shape(rw, rw.shape(value) if values is None else values.shape, what, code)


def _check_shape(rw: Rewriter, shape: tuple[int | None, ...] | None, what: str, code: str) -> None:
    axes = rw.attribute("axes")
    # Without `axes`, all axes are resized.
    rank = len(axes.ints) if axes is not None and axes.ints else rw.rank(rw.input(0))
    # An open count cannot be checked.
    if shape is None or rank is None or None in shape:
        return
    count = math.prod(size for size in shape if size is not None)
    each, have, requirement = (2, "has", "a start and an end") if what == "roi" else (1, "have", "one")
    if count != each * rank:
        rw.refuse(
            f"its {what} {have} {count_of(count, 'element')} for {rank} resized axes",
            code=code,
            hint=f"{each * rank} are required: {requirement} for every axis",
        )
