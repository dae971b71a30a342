"""Boxes that overlap by 10 to 90 %, and regions that lie inside an image."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["boxes"]

_SHIFTS = (0.0, 0.05, 0.2, 0.5, 0.3, 0.6, 0.8, 0.1)
"""Distances between a box and the next one, as shares of its width: two boxes overlap by (1 - share) / (1 + share)."""

_REGIONS = ("RoiAlign", "MaxRoiPool", "CropAndResize")
_LENGTH = 8
"""Pixels of an image whose size is not known."""


def boxes(value: InputValue, rng: np.random.Generator) -> CornerValue | None:
    """Return boxes for NonMaxSuppression, or regions of an image; None for any other input."""
    shape = value.base.shape
    if len(shape) < 2 or shape[-1] not in (4, 5) or value.dtype.kind != "f":
        return None
    suppressed = value.read_at("NonMaxSuppression", 0)
    if suppressed is not None and not suppressed.path.steps:
        centered = bool(suppressed.argument.attribute("center_point_box", 0))
        return CornerValue(_overlapping(shape, rng, centered=centered).astype(value.dtype))
    for operator in _REGIONS:
        reader = value.read_at(operator, 1)
        if reader is not None and not reader.path.steps:
            height, width = (reader.argument.length(0, axis) or _LENGTH for axis in (2, 3))
            scale = float(reader.argument.attribute("spatial_scale", 1.0)) or 1.0
            if operator == "CropAndResize":  # its regions are shares of the image
                height, width = 1, 1
            return CornerValue(_regions(value.base, rng, height / scale, width / scale))
    return None


def _overlapping(shape: tuple[int, ...], rng: np.random.Generator, *, centered: bool) -> Array:
    """Return boxes in groups of eight that overlap; every eighth has its corners the other way round, and one half the size."""
    count = int(np.prod(shape[:-1]))
    at = np.arange(count)
    x1 = 2.0 + 2 * (at // 8) + np.array(_SHIFTS)[at % 8]
    y1 = np.full(count, 3.0) + 0.25 * rng.integers(0, 2, count)
    height = np.where(at % 8 == 4, 0.5, 1.0)
    x2, y2 = x1 + 1.0, y1 + height
    if centered:
        corners = np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], axis=-1)
    else:
        flipped = at % 8 == 7
        corners = np.stack([np.where(flipped, y2, y1), np.where(flipped, x2, x1), np.where(flipped, y1, y2),
                          np.where(flipped, x1, x2)], axis=-1)  # fmt: skip
    return corners.reshape(shape)


def _regions(base: Array, rng: np.random.Generator, height: float, width: float) -> Array:
    """Return regions with corners inside an image, some less than a pixel wide, some that reach over its end."""
    values = base.copy()
    first = values.shape[-1] - 4  # MaxRoiPool has the number of the sample before the corners
    if first:
        values[..., 0] = 0
    start = rng.uniform(0, 0.6, (*values.shape[:-1], 2))
    extent = rng.choice((0.05, 0.3, 0.5, 0.9), start.shape)
    size = np.array([width, height])
    values[..., first : first + 2] = start * size
    values[..., first + 2 :] = (start + extent) * size
    return values
