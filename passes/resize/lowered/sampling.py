"""Where a Resize samples its input along one axis, in the float32 arithmetic of ONNX Runtime's kernel.

Source: core/providers/cpu/tensor (upsamplebase.h: GetOriginalCoordinateFromResizedCoordinate,
GetNearestPixelFromOriginal; upsample.cc: SetupUpsampleBilinear, GetCubicCoeffs; upsample_antialias.h). Each axis is
sampled by itself; what is sampled depends on lengths and scales alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ...lowerings.building import reduce
from ...lowerings.folding import Array, Folding, Operand

__all__ = [
    "Axis",
    "Modes",
    "antialias_matrix",
    "antialiased",
    "coordinates",
    "cubic",
    "linear",
    "nearest",
    "outside",
]

_ONE, _TWO, _HALF, _ZERO = (np.array([value], np.float32) for value in (1, 2, 0.5, 0))

_TIE = np.array([1e-6], np.float32)
"""How far from a half a coordinate still counts as one, in ONNX Runtime 1.31: float32 scales leave few exact halves."""


@dataclass(frozen=True)
class Modes:
    """The attributes of a Resize that say how it samples."""

    mode: str
    coordinates: str
    rounding: str
    cubic_coeff_a: float
    exclude_outside: bool
    extrapolation_value: float
    antialias: bool


@dataclass(frozen=True)
class Axis:
    """One axis: its place, its lengths before and after (int64 vectors of one element), scale and roi (float32, too)."""

    place: int
    length: Operand
    size: Operand
    scale: Operand
    roi: tuple[Operand, Operand]

    @property
    def fixed(self) -> bool:
        """Whether lengths and scale are constants."""
        return not any(isinstance(item, str) for item in (self.length, self.size, self.scale, *self.roi))


def _real(f: Folding, operand: Operand) -> Operand:
    return f.cast(operand, TensorProto.FLOAT)


def _double(f: Folding, operand: Operand) -> Operand:
    return f.cast(operand, TensorProto.DOUBLE)


def coordinates(f: Folding, axis: Axis, kind: str) -> Operand:
    """Return the coordinate in the input of each element of the output, as a float32 vector."""
    place = f.iota(axis.size)
    scale = axis.scale
    if not isinstance(scale, str) and scale[0] == 1:
        return place
    if kind == "asymmetric":
        return f("Div", place, scale)
    middle = f("Add", place, _HALF)
    if kind == "tf_half_pixel_for_nn":
        return f("Div", middle, scale)
    if kind == "half_pixel_symmetric":
        width = f("Mul", scale, _real(f, axis.length))
        adjustment = f("Div", _real(f, axis.size), width)
        center = f("Div", _real(f, axis.length), _TWO)
        offset = f("Mul", center, f("Sub", _ONE, adjustment))
        half = np.array([0.5], np.float64)
        plain = f("Div", f("Add", _double(f, place), half), _double(f, scale))
        return _real(f, f("Sub", f("Add", _double(f, offset), plain), half))
    last = f("Sub", _real(f, axis.length), _ONE)
    steps = f("Max", f("Sub", _real(f, axis.size), _ONE), _ONE)
    if kind == "align_corners":
        return f("Div", f("Mul", place, last), steps)
    if kind == "tf_crop_and_resize":
        start, end = axis.roi
        grid = f("Div", f("Mul", f("Mul", place, f("Sub", end, start)), last), steps)
        many = f("Add", f("Mul", start, last), grid)
        one = f("Mul", f("Mul", _HALF, f("Add", start, end)), last)
        cropped = f("Where", f("Greater", _real(f, axis.size), _ONE), many, one)
        if not isinstance(scale, str):
            return cropped
        return f("Where", f("Or", f("Less", scale, _ONE), f("Greater", scale, _ONE)), cropped, place)
    half_pixel = f("Sub", f("Div", middle, scale), _HALF)
    if kind == "pytorch_half_pixel":
        return f("Mul", half_pixel, _real(f, f("Greater", _real(f, axis.size), _ONE)))
    return half_pixel


def outside(f: Folding, axis: Axis, at: Operand) -> Operand:
    """Return which coordinates lie outside the input, where tf_crop_and_resize writes a value of its own."""
    return f("Or", f("Less", at, _ZERO), f("Greater", at, f("Sub", _real(f, axis.length), _ONE)))


def _index(f: Folding, axis: Axis, at: Operand) -> Operand:
    """Return whole coordinates as indices; those outside become the nearest ones inside."""
    last = f("Sub", _real(f, axis.length), _ONE)
    return f.cast(f("Max", f("Min", at, last), _ZERO), TensorProto.INT64)


def nearest(f: Folding, axis: Axis, at: Operand, rounding: str) -> Operand:
    """Return the index that each element is taken from. The rounding "simple" is that of Resize-10."""
    if rounding.startswith("round"):
        down = f("Floor", at)
        beyond = f("Sub", f("Sub", at, down), _HALF)
        if rounding == "round_prefer_floor":
            up = _real(f, f("Greater", beyond, _TIE))
        else:
            up = f("Sub", _ONE, _real(f, f("Less", beyond, -_TIE)))
        whole = f("Add", down, up)
    elif rounding == "simple" and isinstance(axis.scale, str):
        whole = f("Where", f("Less", axis.scale, _ONE), f("Ceil", at), f("Floor", at))
    elif rounding == "ceil" or (rounding == "simple" and bool((np.asarray(axis.scale) < 1).all())):
        whole = f("Ceil", at)
    else:
        whole = f("Floor", at)
    return _index(f, axis, whole)


def linear(f: Folding, axis: Axis, at: Operand) -> list[tuple[Operand, Operand]]:
    """Return the indices of the two elements between which each coordinate lies, each with its weights."""
    last = f("Sub", _real(f, axis.length), _ONE)
    inside = f("Max", f("Min", at, last), _ZERO)
    first = f("Floor", inside)
    second = f("Min", f("Add", first, _ONE), last)
    between = _real(f, f("Less", first, second))
    both = f("Mul", _HALF, f("Sub", _ONE, between))
    weights = [
        f("Add", f("Mul", f("Abs", f("Sub", inside, other)), between), both) for other in (second, first)
    ]
    return [(_index(f, axis, first), weights[0]), (_index(f, axis, second), weights[1])]


def cubic(
    f: Folding, axis: Axis, at: Operand, modes: Modes
) -> tuple[list[tuple[Operand, Operand]], Operand | None]:
    """Return the indices of four elements, each with its weights, and what their sum is divided by, None for 1."""
    a = np.array([modes.cubic_coeff_a], np.float32)
    down = f("Floor", at)
    part = f("Sub", at, down)
    rest = f("Sub", _ONE, part)

    def far(distance: Operand) -> Operand:
        inner = f("Add", f("Mul", f("Sub", f("Mul", a, distance), 5 * a), distance), 8 * a)
        return f("Sub", f("Mul", inner, distance), 4 * a)

    def near(distance: Operand) -> Operand:
        inner = f("Sub", f("Mul", a + _TWO, distance), a + np.float32(3))
        return f("Add", f("Mul", f("Mul", inner, distance), distance), _ONE)

    weights = [far(f("Add", part, _ONE)), near(part), near(rest), far(f("Sub", _TWO, part))]
    places = [f("Add", down, np.array([shift], np.float32)) for shift in (-1, 0, 1, 2)]
    total: Operand | None = None
    if modes.exclude_outside:
        last = f("Sub", _real(f, axis.length), _ONE)
        for number, place in enumerate(places):
            out = f("Or", f("Less", place, _ZERO), f("Greater", place, last))
            weights[number] = f("Where", out, _ZERO, weights[number])
            total = weights[number] if total is None else f("Add", total, weights[number])
    return [(_index(f, axis, place), weight) for place, weight in zip(places, weights, strict=True)], total


def antialiased(axis: Axis, modes: Modes) -> list[tuple[Array, Array]]:
    """Return the indices and weights of an axis of fixed lengths whose filter grows as the axis shrinks.

    Elements have different counts of neighbours. To have as many for each, the last one is repeated and its weight
    divided, so that no neighbour that does not count is multiplied by 0: infinity times 0 is NaN.
    """
    length, size = (int(np.asarray(item)[0]) for item in (axis.length, axis.size))
    ratio = np.float32(1) / np.asarray(axis.scale)[0]
    reach = np.float32(2 if modes.mode == "cubic" else 1)
    support = reach * ratio if ratio >= 1 else reach
    narrow = np.float32(1) / ratio if ratio >= 1 else np.float32(1)
    window = int(np.ceil(support)) * 2 + 1
    at = np.asarray(coordinates(_Constants(), axis, modes.coordinates))
    rows: list[list[tuple[int, np.float32]]] = []
    for coordinate in at[:size]:
        center = np.float32(0.5) + coordinate
        first = int(np.floor(center - support + np.float32(0.5)))
        end = min(int(np.floor(center + support + np.float32(0.5))), first + window)
        if modes.exclude_outside:
            first, end = (min(max(item, 0), length) for item in (first, end))
        weights: dict[int, np.float32] = {}
        total = np.float32(0)
        for place in range(first, end):
            weight = _filter((np.float32(place) - center + np.float32(0.5)) * narrow, modes)
            total += weight
            inside = min(max(place, 0), length - 1)
            weights[inside] = weights.get(inside, np.float32(0)) + weight
        inverse = np.float32(1) if total == 0 else np.float32(1) / total
        rows.append([(place, weight * inverse) for place, weight in sorted(weights.items())])
    count = max((len(row) for row in rows), default=1)
    for row in rows:
        place, weight = row[-1]
        while len(row) < count:
            weight /= np.float32(2)
            row[-1] = (place, weight)
            row.append((place, weight))
    return [
        (
            np.array([row[number][0] for row in rows], np.int64),
            np.array([row[number][1] for row in rows], np.float32),
        )
        for number in range(count)
    ]


def antialias_matrix(f: Folding, axis: Axis, modes: Modes) -> str:
    """Return the weights of all elements of the input (columns) for each of the output, which are computed at run time.

    Only for exclude_outside: weights outside the input count for nothing.
    """
    center = f.shaped(f("Add", coordinates(f, axis, modes.coordinates), _HALF), 1)
    places = f.iota(axis.length)
    distance = f("Add", f("Sub", places, center), _HALF)
    x = f("Abs", f("Mul", distance, f("Min", axis.scale, _ONE)))
    if modes.mode == "linear":
        weights = f("Max", f("Sub", _ONE, x), _ZERO)
    else:
        a = np.array([modes.cubic_coeff_a], np.float32)
        inner = f("Mul", f("Mul", f("Sub", f("Mul", a + _TWO, x), a + np.float32(3)), x), x)
        outer = f("Sub", f("Mul", f("Add", f("Mul", f("Sub", x, 5 * _ONE), x), 8 * _ONE), x), 4 * _ONE)
        beyond = f("Where", f("Less", x, _TWO), f("Mul", outer, a), _ZERO)
        weights = f("Where", f("Less", x, _ONE), f("Add", inner, _ONE), beyond)
    name = f.name(weights, "weights")
    return f.node("Div", name, reduce(f.rw, "ReduceSum", name, [1]), hint="weights")


def _filter(distance: np.float32, modes: Modes) -> np.float32:
    x = np.abs(distance)
    one, a = np.float32(1), np.float32(modes.cubic_coeff_a)
    if modes.mode == "linear":
        return np.float32(max(one - x, np.float32(0)))
    if x < 1:
        return np.float32(((a + np.float32(2)) * x - (a + np.float32(3))) * x * x + one)
    if x < 2:
        return np.float32((((x - np.float32(5)) * x + np.float32(8)) * x - np.float32(4)) * a)
    return np.float32(0)


class _Constants(Folding):
    """Computes with arrays alone."""

    def __init__(self) -> None:
        pass
