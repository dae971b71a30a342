"""The sizes of boxes in a table of proportions: shares of the image, or pixels divided by its length.

For a square image both give the same numbers, so a table for one does not show which of them holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..domain import Array
from .fits import Fit

__all__ = ["BoxSizes", "box_sizes", "constant_sizes", "level_sizes"]

_NEAR = 1e-4
"""The relative difference up to which two sizes of boxes are equal: float32 rounds the proportions."""

_LARGEST_SHARE = 4.0
"""Boxes of programs are up to a few images large; larger numbers are pixels."""


@dataclass(frozen=True)
class BoxSizes:
    """For each column, by axis of the feature map, whether its bias is a size along this axis that is a number of pixels.

    `clipped` says that a size of more than the whole image is stored as 1.
    """

    masks: tuple[Array, ...]
    bias: Array
    clipped: bool


def box_sizes(fits: Sequence[Fit], images: Sequence[int | None]) -> list[BoxSizes] | None:
    """Return how the sizes of boxes follow the image in each segment; None if the numbers do not decide it."""
    return _decided(fits, [_roles(fit) for fit in fits], images)


def level_sizes(fits: Sequence[Fit], images: Sequence[int | None]) -> list[BoxSizes] | None:
    """Return how numbers that are one for each feature map and anchor follow the image, as strides and sizes of anchors do.

    Whole numbers and powers of two are strides and sizes in pixels, unless they are the lengths of the feature maps. Other pairs
    are widths and heights of boxes, in pixels or as shares of the image.
    """
    numbers = np.concatenate([np.abs(fit.bias).reshape(-1) for fit in fits])
    if _are_lengths(fits):
        return None
    constant = [constant_sizes(fit) for fit in fits]
    pairs = [[_pairs(fit, order) for fit in fits] for order in (0, 1)]
    ways = [[roles for roles in way if roles is not None] for way in pairs]
    if (numbers * 2 == np.round(numbers * 2)).all() and (numbers > _LARGEST_SHARE).any():
        return constant
    if len(ways[0]) < len(fits):
        inverse_strides = bool((np.frexp(numbers[numbers > 0])[0] == 0.5).all())
        return constant if inverse_strides or float(numbers.max()) > 1 else None
    sizes_by_way = [_decided(fits, way, images) for way in ways]
    decided = [sizes for sizes in sizes_by_way if sizes is not None]
    if not decided:
        return constant if float(numbers.max()) > _LARGEST_SHARE else None
    in_pixels = [sizes for sizes in decided if any(size.masks[0].any() for size in sizes)]
    return constant if not in_pixels else in_pixels[0] if len(in_pixels) == len(decided) == 1 else None


def _are_lengths(fits: Sequence[Fit]) -> bool:
    """Return whether each number, or its inverse, is the length of its feature map along one axis."""
    for role in range(len(fits[0].scales)):
        lengths = [fit.columns.length(role) for fit in fits]
        pairs = list(zip(fits, lengths, strict=True))
        if max(lengths) < 2:
            continue
        if all((fit.bias == n).all() or np.allclose(fit.bias * n, 1) for fit, n in pairs):
            return True
    return False


def _pairs(fit: Fit, order: int) -> list[Array] | None:
    """Return the columns of widths and heights in a table of pairs, by axis of the map; None if it holds no pairs."""
    shape = fit.bias.shape
    if not shape or shape[-1] != 2 or len(fit.scales) != 2:
        return None
    pair_index = np.broadcast_to(np.arange(2), shape)
    return [pair_index == order, pair_index != order]


def _decided(
    fits: Sequence[Fit], roles: Sequence[list[Array]], images: Sequence[int | None]
) -> list[BoxSizes] | None:
    known_images = [image for image in images if image]
    sizes: list[list[Array]] = [[], []]
    for fit, masks in zip(fits, roles, strict=True):
        for role, mask in enumerate(masks[:2]):
            sizes[role].append(np.abs(fit.bias[mask]))
    flat = [np.concatenate(each) if each else np.zeros(0) for each in sizes]
    if all(_is_range(each) for each in flat) and all(not (fit.bias[~fit.moves]).any() for fit in fits):
        return [constant_sizes(fit) for fit in fits]
    if (
        len(known_images) < len(images)
        or len(images) != 2
        or flat[0].size != flat[1].size
        or known_images[0] == known_images[1]
    ):
        return None
    # A largest size of exactly 1 is hardly chance, so it is a limit.
    clipped = max(float(each.max(initial=0)) for each in flat) == 1
    pixels = _alike(flat[0] * known_images[0], flat[1] * known_images[1], known_images if clipped else None)
    shares = _alike(flat[0], flat[1], None)
    if pixels == shares:
        return None
    if shares:
        return [constant_sizes(fit) for fit in fits]
    return [
        BoxSizes(tuple(masks), _unclipped(fit.bias, masks, known_images), clipped)
        for fit, masks in zip(fits, roles, strict=True)
    ]


def constant_sizes(fit: Fit) -> BoxSizes:
    """Return sizes that are one number at any size of the image."""
    return BoxSizes(tuple(np.zeros_like(fit.moves) for _ in fit.scales), fit.bias, clipped=False)


def _is_range(sizes: Array) -> bool:
    """Return whether the sizes are the ends of a range of numbers, as the -1 of [-1, 1]."""
    return bool(np.isin(sizes, (0.0, 1.0)).all())


def _roles(fit: Fit) -> list[Array]:
    """Return for each axis of the map the columns that hold a size along it.

    Such a column follows the axis itself, as a corner does, or comes two columns after one that does, as a width does.
    """
    roles = []
    for follows in fit.columns.follows:
        own = follows & (fit.bias != 0)
        shifted = np.zeros_like(follows)
        for axis, size in enumerate(follows.shape):
            if size == 4 and fit.columns.segment.axes[axis] == 4:
                half = np.take(follows, [0, 1], axis)
                moved = np.concatenate([np.zeros_like(half), half], axis)
                shifted = shifted | (moved & ~fit.moves)
        roles.append(own | shifted)
    return roles


def _alike(a: Array, b: Array, clipped_at: Sequence[int] | None) -> bool:
    """Return whether boxes have the same sizes along both axes, in any order; a size that was clipped may be larger."""
    if clipped_at is not None:
        whole = (a >= clipped_at[0]) | (b >= clipped_at[1])
        larger = np.maximum(a, b)
        a, b = np.where(whole, larger, a), np.where(whole, larger, b)
    return bool(np.allclose(np.sort(a), np.sort(b), rtol=_NEAR, atol=0))


def _unclipped(bias: Array, masks: Sequence[Array], images: Sequence[int]) -> Array:
    """Return the sizes in pixels; one that was clipped at the whole image is that of the other axis."""
    pixels = np.asarray(bias, np.float64).copy()
    for mask, image in zip(masks, images, strict=True):
        pixels[mask] *= image
    first, second = pixels[masks[0]], pixels[masks[1]]
    if first.shape == second.shape:
        larger = np.maximum(np.abs(first), np.abs(second))
        pixels[masks[0]] = np.where(np.abs(first) >= images[0], larger * np.sign(first), first)
        pixels[masks[1]] = np.where(np.abs(second) >= images[1], larger * np.sign(second), second)
    rounded = np.round(pixels)
    return np.where(np.abs(pixels - rounded) <= _NEAR * np.maximum(np.abs(pixels), 1), rounded, pixels)
