"""The places at which a Resize samples its input along one axis, in the float32 arithmetic of ONNX Runtime's kernel.

A Resize samples each axis separately. Lengths and scales alone decide which elements it samples. Source, in
core/providers/cpu/tensor:

- upsamplebase.h: GetOriginalCoordinateFromResizedCoordinate, GetNearestPixelFromOriginal
- upsample.cc: SetupUpsampleBilinear, GetCubicCoeffs
- upsample_antialias.h
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value
from onnx_migrate.rewrite.bounded_arrays import bounded
from onnx_migrate.rewrite.resize.spec import CROP, Sampling

__all__ = [
    "AxisValues",
    "Tap",
    "antialias_matrix",
    "antialiased",
    "array_of",
    "coordinates",
    "cubic",
    "linear",
    "nearest",
    "outside",
    "sampled_alike",
    "shaped",
]

_MOST_TAPS = 1 << 19
"""Elements, of all windows together, that are weighed one by one to filter an axis: they take some seconds."""

_ONE, _TWO, _HALF, _ZERO = (np.array([value], np.float32) for value in (1, 2, 0.5, 0))

_TIE = np.array([1e-6], np.float32)
"""How far from a half a coordinate still counts as one, in ONNX Runtime 1.31: float32 scales leave few exact halves."""

Tap = tuple[Value, Value]
"""The indices of one element for each of the output, and their weights."""


@dataclass(frozen=True)
class AxisValues:
    """One axis: its place, its lengths before and after (int64 vectors of one element), scale and roi (float32, too)."""

    place: int
    length: Value
    size: Value
    scale: Value
    roi: tuple[Value, Value]
    fixed: bool
    """Whether all of these are constants."""


def shaped(value: Value, behind: int) -> Value:
    """Add `behind` axes of length 1 after the one axis of a vector."""
    if not behind:
        return value
    if value.array is not None:
        return Value(value.op, array=value.array.reshape(-1, *[1] * behind))
    return value.reshape(-1, *[1] * behind)


def _iota(op: Op, count: Value) -> Value:
    """Return 0, 1, … as float32, as many as the one element of `count` says."""
    if count.array is not None:
        return op.constant(np.arange(bounded(int(count.array[0])), dtype=np.float32))
    return _real(op.iota(count))


def _real(value: Value) -> Value:
    return value.cast(TensorProto.FLOAT)


def _last(axis: AxisValues) -> Value:
    return _real(axis.length) - _ONE


def coordinates(op: Op, axis: AxisValues, kind: str) -> Value:
    """Return the coordinate in the input of each element of the output, as a float32 vector."""
    position, scale = _iota(op, axis.size), axis.scale
    if scale.array is not None and scale.array[0] == 1:
        return position
    if kind == "asymmetric":
        return position / scale
    middle = position + _HALF
    if kind == "tf_half_pixel_for_nn":
        return middle / scale
    if kind == "half_pixel_symmetric":
        width = scale * _real(axis.length)
        adjustment = _real(axis.size) / width
        offset = _real(axis.length) / _TWO * (_ONE - adjustment)
        double, half = TensorProto.DOUBLE, np.array([0.5], np.float64)
        plain = (position.cast(double) + half) / scale.cast(double)
        return _real(offset.cast(double) + plain - half)
    last = _last(axis)
    steps = op.Max(_real(axis.size) - _ONE, _ONE)
    if kind == "align_corners":
        return position * last / steps
    if kind == CROP:
        return _cropped(op, axis, position, last, steps)
    half_pixel = middle / scale - _HALF
    if kind == "pytorch_half_pixel":
        return half_pixel * _real(_real(axis.size) > _ONE)
    return half_pixel


def _cropped(op: Op, axis: AxisValues, place: Value, last: Value, steps: Value) -> Value:
    (start, end), scale = axis.roi, axis.scale
    grid = place * (end - start) * last / steps
    many = start * last + grid
    centre = _HALF * (start + end) * last
    cropped = op.Where(_real(axis.size) > _ONE, many, centre)
    return cropped if scale.array is not None else op.Where((scale < _ONE) | (scale > _ONE), cropped, place)


def outside(op: Op, axis: AxisValues, at: Value) -> Value:
    """Return which coordinates lie outside the input; tf_crop_and_resize writes a value of its own for them."""
    return op.Or(at < _ZERO, at > _last(axis))


def _index(op: Op, axis: AxisValues, at: Value) -> Value:
    """Return whole coordinates as indices; those outside become the nearest ones inside."""
    last = _last(axis)
    return op.Max(op.Min(at, last), _ZERO).cast(TensorProto.INT64)


def nearest(op: Op, axis: AxisValues, at: Value, rounding: str) -> Value:
    """Return the index of the input element for each output element. The rounding "simple" is that of Resize-10."""
    scale = axis.scale
    if rounding.startswith("round"):
        down = op.Floor(at)
        beyond = at - down - _HALF
        up = _real(beyond > _TIE) if rounding == "round_prefer_floor" else _ONE - _real(beyond < -_TIE)
        whole = down + up
    elif rounding == "simple" and scale.array is None:
        whole = op.Where(scale < _ONE, op.Ceil(at), op.Floor(at))
    elif rounding == "ceil" or (rounding == "simple" and scale.array is not None and scale.array[0] < 1):
        whole = op.Ceil(at)
    else:
        whole = op.Floor(at)
    return _index(op, axis, whole)


def linear(op: Op, axis: AxisValues, at: Value) -> list[Tap]:
    """Return the indices of the two elements between which each coordinate lies, each with its weights."""
    last = _last(axis)
    inside = op.Max(op.Min(at, last), _ZERO)
    first = op.Floor(inside)
    second = op.Min(first + _ONE, last)
    between = _real(first < second)
    both = _HALF * (_ONE - between)
    weights = [abs(inside - other) * between + both for other in (second, first)]
    return [(_index(op, axis, first), weights[0]), (_index(op, axis, second), weights[1])]


def cubic(op: Op, axis: AxisValues, at: Value, sampling: Sampling) -> tuple[list[Tap], Value | None]:
    """Return the indices of four elements, each with its weights, and the divisor of their sum, which is None for 1."""
    a = np.array([sampling.cubic_coeff_a], np.float32)
    down = op.Floor(at)
    part = at - down
    rest = _ONE - part

    def far(distance: Value) -> Value:
        return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a

    def near(distance: Value) -> Value:
        return ((a + _TWO) * distance - (a + np.float32(3))) * distance * distance + _ONE

    weights = [far(part + _ONE), near(part), near(rest), far(_TWO - part)]
    positions = [down + np.array([shift], np.float32) for shift in (-1, 0, 1, 2)]
    total: Value | None = None
    if sampling.exclude_outside:
        last = _last(axis)
        for number, position in enumerate(positions):
            weights[number] = op.Where((position < _ZERO) | (position > last), _ZERO, weights[number])
            total = weights[number] if total is None else total + weights[number]
    return [
        (_index(op, axis, position), weight) for position, weight in zip(positions, weights, strict=True)
    ], total


def antialiased(op: Op, axis: AxisValues, sampling: Sampling) -> list[Tap]:
    """Return the indices and weights of an axis of fixed lengths whose filter grows as the axis shrinks.

    Elements have different counts of neighbours. To have as many for each, the last one is repeated and its weight divided. A
    weight of 0 for a missing neighbour would be wrong, since infinity times 0 is NaN.
    """
    length, scale = int(array_of(axis.length)[0]), array_of(axis.scale)[0]
    ratio = np.float32(1) / scale
    reach = np.float32(2 if sampling.mode == "cubic" else 1)
    support = reach * ratio if ratio >= 1 else reach
    narrow = np.float32(1) / ratio if ratio >= 1 else np.float32(1)
    window = int(np.ceil(support)) * 2 + 1
    bounded(int(array_of(axis.size)[0]) * window, _MOST_TAPS)
    rows: list[list[tuple[int, np.float32]]] = []
    for coordinate in array_of(coordinates(op, axis, sampling.coordinates)):
        center = np.float32(0.5) + coordinate
        first = int(np.floor(center - support + np.float32(0.5)))
        end = min(int(np.floor(center + support + np.float32(0.5))), first + window)
        if sampling.exclude_outside:
            first, end = (min(max(bound, 0), length) for bound in (first, end))
        indices = np.arange(first, end)
        distances = (indices.astype(np.float32) - center + np.float32(0.5)) * narrow
        weights: dict[int, np.float32] = {}
        total = np.float32(0)
        for index, weight in zip(
            indices.tolist(), array_of(_filter(op, op.constant(distances), sampling)), strict=True
        ):
            total += weight
            inside = min(max(index, 0), length - 1)
            weights[inside] = weights.get(inside, np.float32(0)) + weight
        inverse = np.float32(1) if total == 0 else np.float32(1) / total
        rows.append([(index, weight * inverse) for index, weight in sorted(weights.items())])
    count = max((len(row) for row in rows), default=1)
    for row in rows:
        index, weight = row[-1]
        while len(row) < count:
            weight /= np.float32(2)
            row[-1] = (index, weight)
            row.append((index, weight))
    return [
        (
            op.constant(np.array([row[number][0] for row in rows], np.int64)),
            op.constant(np.array([row[number][1] for row in rows], np.float32)),
        )
        for number in range(count)
    ]


def antialias_matrix(op: Op, axis: AxisValues, sampling: Sampling) -> Value:
    """Return the weights of all elements of the input (columns) for each of the output, which are computed at run time.

    Only for exclude_outside: weights outside the input count for nothing.
    """
    center = shaped(coordinates(op, axis, sampling.coordinates) + _HALF, 1)
    distance = _iota(op, axis.length) - center + _HALF
    weights = _filter(op, distance * op.Min(axis.scale, _ONE), sampling)
    return weights / op.ReduceSum(weights, [1])


def _filter(op: Op, distance: Value, sampling: Sampling) -> Value:
    """Return the weights of elements at these distances, in elements of the output if the axis shrinks."""
    x = abs(distance)
    if sampling.mode == "linear":
        return op.Max(_ONE - x, _ZERO)
    a = np.array([sampling.cubic_coeff_a], np.float32)
    inner = ((a + _TWO) * x - (a + np.float32(3))) * x * x
    outer = ((x - 5 * _ONE) * x + 8 * _ONE) * x - 4 * _ONE
    beyond = op.Where(x < _TWO, outer * a, _ZERO)
    return op.Where(x < _ONE, inner + _ONE, beyond)


def sampled_alike(op: Op, axis: AxisValues, old: Sampling, new: Sampling) -> bool:
    """Return whether two ways to sample an axis of fixed lengths and scale read the same elements with the same weights."""
    first, second = _samples(op, axis, old), _samples(op, axis, new)
    return len(first) == len(second) and all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def _samples(op: Op, axis: AxisValues, sampling: Sampling) -> list[npt.NDArray[Any]]:
    at = coordinates(op, axis, sampling.coordinates)
    if sampling.mode == "nearest":
        return [array_of(nearest(op, axis, at, sampling.rounding))]
    if sampling.antialias:
        taps = antialiased(op, axis, sampling)
    else:
        taps = linear(op, axis, at) if sampling.mode == "linear" else cubic(op, axis, at, sampling)[0]
    return [array_of(value) for tap in taps for value in tap]


def array_of(value: Value) -> npt.NDArray[Any]:
    """Return the array of a value that follows from constants alone."""
    assert value.array is not None
    return value.array
