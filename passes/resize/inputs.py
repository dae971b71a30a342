"""What an Upsample or Resize is given, held against the standard before anything is rewritten."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from onnx_migrate.rewrite.rewriter import Rewriter

__all__ = [
    "check_choice",
    "check_roi",
    "emptiness",
    "is_from_converter",
    "read_scales",
    "read_sizes",
]

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
"""What the attributes of Resize-11 may say, the default first. ONNX Runtime runs cubic before 11 too."""


def check_choice(rw: Rewriter, name: str) -> str:
    """Return what an attribute says or is by default; refuse, code `no-such-mode`, what does not exist."""
    choices = CHOICES[name]
    value = str(rw.get(name, choices[0]))
    if value not in choices:
        rw.refuse(f"{name} is {value!r}", code="no-such-mode", hint=f"{', '.join(choices)} exist")
    return value


def read_scales(rw: Rewriter, value: str) -> Floats | None:
    """Return valid scales, None if they come at run time; refuse others with `bad-scales`."""
    scales = rw.constant_value(value)
    if rw.dtype(value) not in (TensorProto.FLOAT, None):
        kind = TensorProto.DataType.Name(rw.need_dtype(value))
        rw.refuse(f"scales is of type {kind}", code="bad-scales", hint="scales are float (32 bits)")
    _check_length(rw, value, scales, 1, "scales", code="bad-scales")
    if scales is None:
        return None
    scales = scales.reshape(-1)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        rw.refuse(f"scales is {scales.tolist()}", code="bad-scales", hint="scales are finite and above 0")
    return scales


def read_sizes(rw: Rewriter, value: str) -> npt.NDArray[np.int64] | None:
    """Return valid sizes, None if they come at run time; refuse others with `bad-sizes`."""
    sizes = rw.constant_value(value)
    if rw.dtype(value) not in (TensorProto.INT64, None):
        kind = TensorProto.DataType.Name(rw.need_dtype(value))
        rw.refuse(f"sizes is of type {kind}", code="bad-sizes", hint="sizes are int64")
    _check_length(rw, value, sizes, 1, "sizes", code="bad-sizes")
    if sizes is None:
        return None
    sizes = sizes.reshape(-1)
    if (sizes < 0).any():
        rw.refuse(f"sizes is {sizes.tolist()}", code="bad-sizes", hint="a length is 0 or more")
    return sizes


def check_roi(rw: Rewriter, value: str) -> None:
    """Refuse, code `bad-roi`, a region that does not have a start and an end for every axis."""
    _check_length(rw, value, rw.constant_value(value), 2, "roi", code="bad-roi")


def emptiness(rw: Rewriter, value: str) -> bool | None:
    """Tell whether a value holds no element; None when that shows only at run time."""
    if not value:
        return True
    constant = rw.constant_value(value)
    shape = rw.shape(value) if constant is None else constant.shape
    if shape is not None and 0 in shape:
        return True
    return None if shape is None or None in shape else False


def is_from_converter(rw: Rewriter) -> bool:
    """Recognise what onnx's version converter leaves of an older Resize: roi [0…, 1…] and no coordinates.

    The node computes half_pixel where the older one computed asymmetric. No exporter writes such a roi
    without tf_crop_and_resize beside it.
    """
    if not rw.input(1) or rw.attribute("coordinate_transformation_mode") or rw.attribute("nearest_mode"):
        return False
    roi = rw.constant_value(rw.input(1))
    if roi is None or roi.ndim != 1 or not roi.size or roi.size % 2:
        return False
    half = roi.size // 2
    return bool((roi[:half] == 0).all() and (roi[half:] == 1).all())


def _check_length(
    rw: Rewriter, value: str, known: npt.NDArray[Any] | None, each: int, what: str, *, code: str
) -> None:
    shape = rw.shape(value) if known is None else known.shape
    axes = rw.attribute("axes")
    rank = len(axes.ints) if axes is not None and axes.ints else rw.rank(rw.input(0))
    if shape is None or rank is None or None in shape:
        return
    count = int(np.prod([size for size in shape if size is not None]))
    if count != each * rank:
        rw.refuse(
            f"{what} has {count} elements, and {rank} axes are to be resized",
            code=code,
            hint=f"{what} has {'one element' if each == 1 else 'two elements'} for every axis",
        )
