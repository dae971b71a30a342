"""The kinds of scale that the positions of a grid may have, and the fit of columns to one of them.

A column that follows an axis of a feature map is (position + offset) * scale + bias. The scale of a kind changes with the
sizes in its own way:

- PIXELS: a number, for example the stride of an anchor in pixels.
- SHARE: a number / the length of the feature map, for example proportions of the image.
- EDGE: a number / (the length of the feature map - 1), for example linspace.
- IMAGE_SHARE: a number / the length of the image, for example stride / height.
- STRETCHED: a number * the length of the image / the length of the feature map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from ..domain import Array
from .columns import Columns

__all__ = ["Fit", "Kind", "fit_of"]


class Kind(Enum):
    """How the scale of a grid changes with the sizes."""

    PIXELS = "pixels"
    SHARE = "share"
    EDGE = "edge"
    IMAGE_SHARE = "image share"
    STRETCHED = "stretched"


_SHARES = (1.0, 2.0, math.pi, 2 * math.pi)
"""The numbers that proportions are scaled by: to [0, 1], to [-1, 1] and to angles."""
_OFFSETS = (0.5, 0.0, 1.0, -0.5)
"""The offsets of positions in feature maps: the centre of a cell, its corners, and the centre as YOLOv5 shifts it."""
_FINEST_STRIDE = 64
"""A stride below one pixel is a multiple of 1 / 64; a longer one is a multiple of 1 / 2."""


@dataclass(frozen=True)
class Fit:
    """The law of the columns of one segment: for each axis of the map the scales, for each column an offset and a bias."""

    columns: Columns
    kind: Kind
    scales: tuple[Array, ...]
    offset: Array
    bias: Array

    @property
    def moves(self) -> Array:
        """Whether each column follows an axis of the feature map."""
        return np.asarray(np.logical_or.reduce(self.columns.follows))

    @property
    def scale(self) -> Array:
        """Return the one scale of each column, 1 for a column that follows no axis."""
        return np.asarray(sum(self.scales) + ~self.moves)


def fit_of(parts: Sequence[Columns], kind: Kind, images: Sequence[int | None]) -> list[Fit] | None:
    """Return the law of each segment if its scale is of a kind; None if the numbers do not fit it.

    `images` are the lengths of the image along the axes of the feature map. All columns share one offset, or all have a bias.
    """
    scales = _all_scales(parts, kind, images)
    if scales is None:
        return None
    common = _common_offset(parts)
    if common is None and kind is not Kind.PIXELS:
        # A grid from edge to edge starts at 0, and nearly all others at the centre of a cell.
        common_offset, biased = 0.0 if kind is Kind.EDGE else 0.5, True
    else:
        common_offset, biased = common or 0.0, common is None
    others = {scale for each in scales for array in each for scale in np.unique(array).tolist()} - {0.0}
    usual = others.pop() if len(others) == 1 else 0.0
    fits = []
    for columns, shown in zip(parts, scales, strict=True):
        each = _of_single_rows(columns, kind, shown, images, common_offset, usual, biased=biased)
        if each is None:
            return None
        slopes = sum(scale * _unit(columns, role, kind, images) for role, scale in enumerate(each))
        moves = np.logical_or.reduce(columns.follows)
        offset = np.where(moves, common_offset, 0.0)
        bias = columns.first - offset * slopes
        bias = np.where(moves & (np.abs(bias) <= columns.tolerance), 0.0, bias)
        if kind is Kind.IMAGE_SHARE and not _is_one_stride(each):
            return None
        fits.append(Fit(columns, kind, tuple(each), offset, bias))
    return fits


def _is_one_stride(scales: Sequence[Array]) -> bool:
    """Return whether a feature map has one stride along rows and columns: other scales only round to whole numbers."""
    numbers = {scale for array in scales for scale in np.unique(array).tolist()} - {0.0}
    return len(numbers) < 2


def _unit(columns: Columns, role: int, kind: Kind, images: Sequence[int | None]) -> float:
    """Return by how much a scale of 1 moves a column from row to row at the frozen sizes."""
    length, image = columns.length(role), images[role] or 0
    if kind is Kind.PIXELS:
        return 1.0
    if kind is Kind.SHARE:
        return 1 / length
    if kind is Kind.EDGE:
        return 1 / (length - 1) if length > 1 else 0.0
    if kind is Kind.IMAGE_SHARE:
        return 1 / image if image else 0.0
    return image / length


def _all_scales(
    parts: Sequence[Columns], kind: Kind, images: Sequence[int | None]
) -> list[list[Array]] | None:
    """Return the scales of each segment and axis; those of a map with a single row are not known yet, and 0."""
    all_scales = []
    for columns in parts:
        each = []
        for role, slopes in enumerate(columns.slopes):
            unit = _unit(columns, role, kind, images)
            if not columns.follows[role].any() or columns.length(role) == 1:
                each.append(np.zeros_like(slopes))
                continue
            if not unit:
                return None
            scales = slopes / unit
            # Both ends of an axis are rounded, and all steps between them share that error.
            near = 2 * columns.tolerance / (columns.length(role) - 1) / unit
            rounded = _snapped(scales, kind)
            if (np.abs(scales - rounded) > max(near, 1e-12)).any():
                return None
            each.append(rounded)
        all_scales.append(each)
    return all_scales


def _snapped(scales: Array, kind: Kind) -> Array:
    """Return the nearest scales that programs use; 0 stays."""
    if kind is Kind.PIXELS:
        parts = np.where(np.abs(scales) > 0.9, 2, _FINEST_STRIDE)
        return np.asarray(np.round(scales * parts) / parts)
    if kind is Kind.IMAGE_SHARE:
        return np.asarray(np.round(scales))
    usual = np.array([0.0, *_SHARES] if kind is not Kind.STRETCHED else [0.0, 1.0])
    nearest = np.abs(scales[..., None] - usual).argmin(-1)
    return np.asarray(usual[nearest])


def _common_offset(parts: Sequence[Columns]) -> float | None:
    """Return the one offset of all columns in all segments, None if they have none in common."""
    for offset in _OFFSETS:
        fits = True
        for columns in parts:
            for role, slopes in enumerate(columns.slopes):
                moved = columns.follows[role] & (slopes != 0)
                fits &= not (np.abs(columns.first - offset * slopes)[moved] > columns.tolerance).any()
        if fits:
            return offset
    return None


def _of_single_rows(
    columns: Columns,
    kind: Kind,
    scales: list[Array],
    images: Sequence[int | None],
    offset: float,
    usual: float,
    *,
    biased: bool,
) -> list[Array] | None:
    """Return the scales with those of an axis of length 1, which follow from the offset that the other maps show.

    `usual` is the one scale of the other maps, 0 if they have several.
    """
    new_scales = list(scales)
    for role, scale in enumerate(scales):
        follows = columns.follows[role]
        if columns.length(role) > 1 or not follows.any():
            continue
        if kind in (Kind.SHARE, Kind.STRETCHED) and usual:
            new_scales[role] = np.where(follows, usual, scale)
            continue
        unit = _unit(columns, role, kind, images)
        if biased or not offset or not unit:
            return None
        single = columns.first / offset / unit
        snapped = _snapped(single, kind)
        if (np.abs(single - snapped)[follows] > 1e-3).any():
            return None
        new_scales[role] = np.where(follows, snapped, scale)
    return new_scales
