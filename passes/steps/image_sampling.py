"""Samples images at coordinates by Gathers of the elements around them, weighed and added in the order of ONNX Runtime.

The source is ONNX Runtime's core/providers/cpu/tensor/grid_sample.cc. All computations have the channels last. Coordinates
and weights have a last axis of length 1, so they broadcast to all channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from onnx_migrate.engine.steps.formula import Array, Op, TensorProto, Value

__all__ = ["SampledAxis", "Sampler", "channel_rows"]


@dataclass(frozen=True)
class SampledAxis:
    """A spatial axis: its coordinates in the input, its length minus 1, and the number of elements per step (`stride`)."""

    at: Value
    last: Value
    stride: Value | None


@dataclass(frozen=True)
class _Place:
    """Whole coordinates along one axis: the numbers of the elements there, and whether the coordinates are inside the input."""

    number: Value
    inside: Value | None


class Sampler:
    """Samples images at coordinates. The images are rows of channels, and the coordinates have a last axis of length 1."""

    def __init__(
        self,
        op: Op,
        real: int,
        rows: Value,
        *,
        rank: int,
        padding: str = "zeros",
        corners: bool = False,
        by_corner: bool = True,
    ) -> None:
        """Start with the images' elements. `rank` is that of the coordinates, and `real` their element type.

        With `by_corner`, a linear sample is the sum of each corner times the product of its weights. Without it, each axis is
        interpolated after the other.
        """
        self.op, self.real, self.rows, self.rank = op, real, rows, rank
        self.padding, self.corners, self.by_corner = padding, corners, by_corner
        self.numpy = np.float64 if real == TensorProto.DOUBLE else np.float32
        self.zero = op.constant(np.zeros(1), rows)
        self.axes: list[SampledAxis] = []
        """The spatial axes, the outermost first."""
        self.batch: Value | None = None
        """The number of the first element of each image, None for one image."""

    def number(self, value: float) -> Array:
        """Return a number as an array of the coordinates' type."""
        return np.array([value], self.numpy)

    def set_images(self, count: Value, plane: Value) -> None:
        """Set how many images there are, and how many elements each has."""
        first = self.op.iota(count).as_written() * plane
        self.batch = first.reshape(-1, *[1] * (self.rank - 1))

    def place(self, axis: SampledAxis, at: Value) -> _Place:
        """Return the elements at whole coordinates. Outside, the padding mode selects other elements or marks them as outside."""
        zero = self.op.constant(self.number(0))
        if self.padding == "reflection":
            at = self._reflected(axis, at)
        # These comparisons turn NaN into an index inside.
        low = self.op.Where(at < axis.last, at, axis.last)
        number = self.op.Where(low > zero, low, zero).cast(TensorProto.INT64)
        if axis.stride is not None:
            number = number * axis.stride
        if self.padding != "zeros":
            return _Place(number, None)
        return _Place(number, (at > self.number(-0.5)) & (at < axis.last + self.number(0.5)))

    def _reflected(self, axis: SampledAxis, at: Value) -> Value:
        """Mirror coordinates at both borders until they lie inside."""
        op, zero, two = self.op, self.op.constant(self.number(0)), self.number(2)
        edge = self.number(0 if self.corners else 0.5)
        low, high = zero - edge, axis.last + edge
        span = high - low
        beyond = op.Max(low - at, at - high)
        times = op.Floor(beyond / span)
        rest = beyond - times * span
        odd = times - two * op.Floor(times / two)
        # Count from the low border if a coordinate below it is mirrored an even number of times, or one above it an odd number.
        below = (at < low).cast(self.real)
        from_low = abs(below - odd) > self.number(0.5)
        mirrored = op.Where(from_low, low + rest, high - rest)
        return op.Where(beyond > zero, mirrored, at)

    def pixel(self, places: list[_Place]) -> Value:
        """Return the elements of all channels at the point that the coordinates along all axes give."""
        first, *others = places
        number, inside = first.number, first.inside
        for coordinate in others:
            number = number + coordinate.number
        if self.batch is not None:
            number = number + self.batch
        values = self.op.Gather(self.rows, self.op.Squeeze(number, [self.rank - 1]), axis=0)
        for coordinate in others:
            inside = (
                inside & coordinate.inside if inside is not None and coordinate.inside is not None else None
            )
        return values if inside is None else self.op.select(~inside, self.zero, values)

    def nearest(self) -> Value:
        """Return the elements nearest to the coordinates."""
        return self.pixel([self.place(axis, self.op.Round(axis.at)) for axis in self.axes])

    def linear(self) -> Value:
        """Return the elements around the coordinates, weighed linearly by distance."""
        sides: list[list[tuple[_Place, Value]]] = []
        for axis in self.axes:
            first = self.op.Floor(axis.at)
            second = first + self.number(1)
            near, far = self.place(axis, first), second - axis.at
            sides.append([(near, far), (self.place(axis, second), axis.at - first)])
        if not self.by_corner:
            return self._nested(sides, [])
        terms = (
            (by_row * by_column) * self.pixel([row, column])
            for row, by_row in sides[0]
            for column, by_column in sides[1]
        )
        return _sum(terms)

    def _nested(self, sides: list[list[tuple[_Place, Value]]], chosen: list[_Place]) -> Value:
        if not sides:
            return self.pixel(chosen)
        return _sum(
            weight * self._nested(sides[1:], [*chosen, coordinate]) for coordinate, weight in sides[0]
        )

    def cubic(self) -> Value:
        """Return the elements around the coordinates, four along each axis, weighed by the cubic function of their distance."""
        sides: list[list[tuple[_Place, Value]]] = []
        for axis in self.axes:
            down = self.op.Floor(axis.at)
            # The kernel subtracts the first of the four positions, and then 1.
            weights = self._cubic_weights(axis.at - (down + self.number(-1)) - self.number(1))
            coordinates = [
                self.place(axis, down + self.number(shift) if shift else down) for shift in (-1, 0, 1, 2)
            ]
            sides.append(list(zip(coordinates, weights, strict=True)))
        return self._nested(sides, [])

    def _cubic_weights(self, part: Value) -> list[Value]:
        number, a = self.number, -0.75

        def far(distance: Value) -> Value:
            inner: Value = (number(a) * distance - number(5 * a)) * distance + number(8 * a)
            return inner * distance - number(4 * a)

        def near(distance: Value) -> Value:
            inner: Value = (number(a + 2) * distance - number(a + 3)) * distance
            return inner * distance + number(1)

        rest = number(1) - part
        return [far(part + number(1)), near(part), near(rest), far(number(2) - part)]


def _sum(terms: Iterable[Value]) -> Value:
    """Return the sum of values. Each value is added before the next one is computed."""
    return reduce(Value.__add__, terms)


def channel_rows(op: Op, value: Value, rank: int, count: Value | Sequence[int]) -> Value:
    """Return the elements of images as rows of channels. `count` is the number of channels (int64 of shape [1])."""
    last = op.Transpose(value, perm=[0, *range(2, rank), 1])
    return op.Reshape(last, op.Concat([-1], count, axis=0))
