"""The lengths of a Resize: the new length of an axis from scales and sizes, in a run and in onnx's inference.

Sources: ONNX Runtime's kernel (core/providers/cpu/tensor/upsamplebase.h: ComputeOutputShape,
ParseScalesDataFromOutputSize, AdjustOutputSizeAsPolicy) and onnx's shape inference (defs/tensor/utils.cc:
resizeShapeInferenceHelper). Upsample follows the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = [
    "Floats",
    "exact_length",
    "inferred_length",
    "lengths_agree_always",
    "lengths_differ",
    "may_keep_all_lengths",
    "picked",
    "resized_axes",
    "run_length",
    "samples_alike",
    "scale_of_size",
    "sizes_are_lengths",
]

Floats = npt.NDArray[np.float32]

_BY_LENGTHS = ("align_corners", "tf_crop_and_resize")
"""Coordinate transformations that compute with lengths, not with scales; they do not change an axis of scale 1."""


def run_length(length: int, scale: float) -> int:
    """Return the new length of an axis in ONNX Runtime: the float32 product, truncated (ComputeOutputShape)."""
    return int(np.float32(scale) * np.float32(length))


def inferred_length(length: int, scale: float) -> int:
    """Return how long an axis becomes in the shape inference of onnx 1.22 and later: the float64 product, truncated.

    ONNX Runtime infers with onnx: 1.28 is the first release with such an onnx.
    """
    return int(np.float64(np.float32(scale)) * length)


def lengths_differ(length: int, scale: float) -> bool:
    """Return whether the inferred length is not the one that runs."""
    return bool(np.isfinite(scale)) and inferred_length(length, scale) != run_length(length, scale)


def lengths_agree_always(scales: Floats) -> bool:
    """Return whether the inferred length equals the length in a run for every axis of less than a million elements.

    True for scales with at most four significant bits, such as small integers, halves and quarters. A float32 product
    of 4 and 20 bits is exact.
    """
    fractions = np.frexp(scales)[0] * 16
    return bool((fractions == np.round(fractions)).all())


def exact_length(length: int, scale: float) -> int | None:
    """Return length × scale if it is a whole number, so that every precision agrees on it, else None."""
    product = length * scale
    return int(product) if product == int(product) else None


def scale_of_size(length: int, size: int) -> np.float32:
    """Return the scale that ONNX Runtime computes with when `size` is given (ParseScalesDataFromOutputSize)."""
    return np.float32(size) / np.float32(length) if length else np.float32(1)


def samples_alike(length: int, scale: float, coordinates: str) -> bool:
    """Return whether the length that `scale` runs to, given as a size, samples at the coordinates that `scale` does.

    It does if the scale of that size is `scale` bit for bit. `coordinates` is a coordinate_transformation_mode: some
    do not read the scale, except that an axis of scale 1 is not sampled.
    """
    again = scale_of_size(length, run_length(length, scale))
    return bool(again == scale or (coordinates in _BY_LENGTHS and again != 1 and scale != 1))


def picked(length: int, size: int, scale: float, coordinates: str, nearest_mode: str) -> Floats:
    """Return the index that a nearest Resize picks for each of `size` elements.

    Source: GetOriginalCoordinateFunc and GetNearestPixelFunc of upsamplebase.h. tf_crop_and_resize is not among them.
    """
    at, half = np.arange(size, dtype=np.float32), np.float32(0.5)
    if coordinates == "align_corners":
        at = at * np.float32(length - 1) / np.float32(max(size - 1, 1))
    elif coordinates == "asymmetric":
        at = at / np.float32(scale)
    elif coordinates == "pytorch_half_pixel" and size <= 1:
        at = at * 0
    else:
        at = (at + half) / np.float32(scale) - half
    rounded = {
        "floor": np.floor(at),
        "ceil": np.ceil(at),
        "round_prefer_floor": np.ceil(at - half),
        "round_prefer_ceil": np.floor(at + half),
    }[nearest_mode]
    indices: Floats = np.clip(rounded, 0, length - 1)
    return indices


def may_keep_all_lengths(scales: Floats) -> bool:
    """Return whether scales, all 1 or more, can leave every length unchanged although they are not all 1.

    ONNX Runtime then copies the input instead of sampling it (upsample.cc: BaseCompute). A scale of 2 or more lengthens
    every axis. A scale of 1.5 or more lengthens all axes except those of length 1, whose only index is 0 either way.
    """
    growing = scales[scales > 1]
    return bool((growing < 1.5).any() and (growing < 2).all())


def sizes_are_lengths(policy: str) -> bool:
    """Return whether `sizes` are the output lengths under a keep_aspect_ratio_policy (since opset 18).

    Under "not_larger" and "not_smaller" they are bounds, and all axes get one scale (AdjustOutputSizeAsPolicy).
    """
    return policy == "stretch"


def resized_axes(axes: Sequence[int], rank: int) -> list[int]:
    """Return which axes scales and sizes are of: those of the attribute `axes` (since opset 18), else all."""
    return [axis % rank for axis in axes] or list(range(rank))
