"""What Upsample and Resize compute, in NumPy: from the standard's text, and where that is silent, the kernel.

Standard: onnx/defs/tensor/defs.cc and old.cc (the formulas of `coordinate_transformation_mode` and
`nearest_mode`, Keys' cubic). Kernel (ONNX Runtime's cpu/tensor/upsample.cc, upsamplebase.h): all that has to
do with float32, the copy when no length changes, an axis of scale 1 left as it is, the direction in which
version 10 rounds. `antialias` and `keep_aspect_ratio_policy` are not here: no rewrite touches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Spec", "index_map", "output_lengths", "positions", "resize"]

Array = np.ndarray[Any, Any]
F = np.float32


@dataclass(frozen=True)
class Spec:
    """The attributes of a node. `version` is the since_version of Upsample (1, 7, 9) or of Resize (10 and later)."""

    version: int
    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    extrapolation_value: float = 0.0
    roi: tuple[float, ...] = ()
    tie: float = 1e-6
    """The distance from a half that rounding takes for a half. ONNX Runtime had 0 until its issue 28291 (2026)."""

    @property
    def transform(self) -> str:
        """The coordinate transformation; before version 11 there was only one."""
        return self.coordinates if self.version >= 11 else "asymmetric"


def output_lengths(lengths: Sequence[int], scales: Sequence[float]) -> list[int]:
    """Return floor(length × scale), computed in float32."""
    return [int(F(length) * F(scale)) for length, scale in zip(lengths, scales, strict=True)]


def positions(
    spec: Spec, scale: float, length: int, out: int, roi: tuple[float, float] = (0.0, 1.0)
) -> Array:
    """Return where each of `out` elements of an axis lies among the `length` of the input, as float32."""
    x, s, n, m = np.arange(out, dtype=F), F(scale), F(length), F(out)
    half, one = F(0.5), F(1)
    if spec.transform == "asymmetric":
        return x / s
    if spec.transform == "half_pixel":
        return (x + half) / s - half
    if spec.transform == "pytorch_half_pixel":
        return (x + half) / s - half if out > 1 else np.zeros(out, F)
    if spec.transform == "tf_half_pixel_for_nn":
        return (x + half) / s
    if spec.transform == "align_corners":
        return x * (n - one) / (m - one) if out != 1 else np.zeros(out, F)
    if spec.transform == "half_pixel_symmetric":
        offset = n / F(2) * (one - m / (s * n))
        return (np.float64(offset) + (x + half).astype(np.float64) / np.float64(s) - 0.5).astype(F)
    start, end = F(roi[0]), F(roi[1])  # tf_crop_and_resize
    if out > 1:
        return start * (n - one) + x * (end - start) * (n - one) / (m - one)
    return np.full(out, 0.5 * np.float64(start + end) * np.float64(n - one), F)


def index_map(spec: Spec, scale: float, length: int, out: int, rank: int = 2) -> Array:
    """Return which input element each output element of an axis is in mode nearest; -1: extrapolated.

    Of rank 1, ONNX Runtime treats a scale of 1 like any other.
    """
    if scale == 1 and rank > 1:
        return np.arange(out)
    roi = (spec.roi[0], spec.roi[1]) if spec.roi else (0.0, 1.0)
    where = positions(spec, scale, length, out, roi)
    rounding = spec.nearest
    if spec.version < 11:
        # Resize-10 rounds up on an axis that shrinks. No runtime shrinks by Upsample: floor is its formula.
        rounding = "ceil" if spec.version == 10 and scale < 1 else "floor"
    found = np.clip(_rounded(where, rounding, spec.tie), 0, length - 1)
    if spec.transform == "tf_crop_and_resize":
        found = np.where(_outside(where, length), -1, found)
    return found


def _rounded(where: Array, rounding: str, tie: float) -> Array:
    floor = np.floor(where)
    if rounding == "floor":
        return floor.astype(np.int64)
    if rounding == "ceil":
        return np.ceil(where).astype(np.int64)
    above = (where - floor).astype(np.float64) - 0.5
    up = above > tie if rounding == "round_prefer_floor" else above >= -tie
    return (floor + up).astype(np.int64)


def _outside(where: Array, length: int) -> Array:
    return np.asarray((where < 0) | (where > length - 1))


def resize(
    x: Array, spec: Spec, *, scales: Sequence[float] | None = None, sizes: Sequence[int] | None = None
) -> Array:
    """Return what the node computes from `x`, by scales or by sizes."""
    if sizes is not None:
        out = list(sizes)
        scales = [F(new) / F(old) if old else F(1) for new, old in zip(out, x.shape, strict=True)]
    else:
        assert scales is not None
        scales = [F(scale) for scale in scales]
        out = output_lengths(x.shape, scales)
    if tuple(out) == x.shape:
        return x.copy()
    regions = [(0.0, 1.0)] * x.ndim
    if spec.roi and spec.transform == "tf_crop_and_resize":
        regions = list(zip(spec.roi[: x.ndim], spec.roi[x.ndim :], strict=True))
    if spec.mode == "nearest":
        return _nearest(x, spec, scales, out, regions)
    axes = _interpolated(x.ndim, scales)
    found = [
        np.arange(out[axis], dtype=F)
        if scales[axis] == 1
        else positions(spec, scales[axis], x.shape[axis], out[axis], regions[axis])
        for axis in axes
    ]
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    result = _linear(moved, found) if spec.mode == "linear" else _cubic(moved, found, spec)
    if spec.transform == "tf_crop_and_resize":
        for place, where in enumerate(found):
            shape = [-1 if axis == place else 1 for axis in range(len(axes))]
            outside = _outside(where, moved.shape[place - len(axes)]).reshape(shape)
            result = np.where(outside, F(spec.extrapolation_value), result)
    return np.moveaxis(result.astype(x.dtype), range(-len(axes), 0), axes)


def _nearest(
    x: Array, spec: Spec, scales: Sequence[float], out: list[int], regions: list[tuple[float, float]]
) -> Array:
    missing = np.zeros(out, bool)
    for axis in range(x.ndim):
        one = Spec(**{**vars(spec), "roi": regions[axis]})
        indices = index_map(one, scales[axis], x.shape[axis], out[axis], x.ndim)
        missing |= (indices < 0).reshape([-1 if other == axis else 1 for other in range(x.ndim)])
        x = np.take(x, np.maximum(indices, 0), axis=axis)
    return np.where(missing, np.array(spec.extrapolation_value).astype(x.dtype), x)


def _interpolated(rank: int, scales: Sequence[float]) -> list[int]:
    """Return the axes that linear and cubic work on: images, NHWC too, and volumes."""
    if rank == 4:
        return [2, 3] if scales[0] == 1 and scales[1] == 1 else [1, 2]
    return list(range(rank)) if rank < 4 else [2, 3, 4]


def _linear(x: Array, found: list[Array]) -> Array:
    """Interpolate over the last axes; the products and sums in the kernel's order, the last axis fastest."""
    rank = len(found)
    corners = []
    for axis, where in enumerate(found):
        length = x.shape[axis - rank]
        where = np.clip(where, F(0), F(length - 1))
        low = np.minimum(where.astype(np.int64), length - 1)
        high = np.minimum(low + 1, length - 1)
        near, far = np.abs(where - low.astype(F)), np.abs(where - high.astype(F))
        same = low == high
        near, far = np.where(same, F(0.5), near), np.where(same, F(0.5), far)
        corners.append(((low, far), (high, near)))
    total: Array | None = None
    for corner in range(2**rank):
        value, weight = x, None
        for axis in reversed(range(rank)):
            indices, factor = corners[axis][corner >> (rank - 1 - axis) & 1]
            value = np.take(value, indices, axis=axis - rank)
            factor = factor.reshape([-1 if other == axis else 1 for other in range(rank)])
            weight = factor if weight is None else weight * factor
        term = weight * value.astype(F)
        total = term if total is None else total + term
    assert total is not None
    return total


@np.errstate(invalid="ignore", divide="ignore")  # no neighbour inside: 0 / 0, and the kernel gives NaN too
def _cubic(x: Array, found: list[Array], spec: Spec) -> Array:
    """Convolve rows and then columns with Keys' cubic."""
    rows, columns = found
    height, width = x.shape[-2:]
    x = x.astype(F)
    across = np.zeros((*x.shape[:-1], len(columns)), F)
    for indices, weight, total in _taps(columns, width, spec):
        across = across + weight / total * np.take(x, indices, axis=-1)
    result = np.zeros((*x.shape[:-2], len(rows), len(columns)), F)
    for indices, weight, total in _taps(rows, height, spec):
        result = result + np.take(across, indices, axis=-2) * weight[:, None] / total[:, None]
    return result


def _taps(where: Array, length: int, spec: Spec) -> list[tuple[Array, Array, Array]]:
    """Return each position's four neighbours: their indices and weights, and the sum to divide these by."""
    base = np.floor(where).astype(np.int64)
    s, a = where - base.astype(F), F(spec.cubic_coeff_a)
    one, two, three, four, five, eight = (F(number) for number in (1, 2, 3, 4, 5, 8))
    far, inv = s + one, one - s
    weights = [
        ((a * far - five * a) * far + eight * a) * far - four * a,
        ((a + two) * s - (a + three)) * s * s + one,
        ((a + two) * inv - (a + three)) * inv * inv + one,
        ((a * (two - s) - five * a) * (two - s) + eight * a) * (two - s) - four * a,
    ]
    places = [base + offset for offset in (-1, 0, 1, 2)]
    total = np.ones_like(where)
    if spec.exclude_outside:
        weights = [np.where((p < 0) | (p >= length), F(0), w) for p, w in zip(places, weights, strict=True)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
    return [(np.clip(p, 0, length - 1), w, total) for p, w in zip(places, weights, strict=True)]
