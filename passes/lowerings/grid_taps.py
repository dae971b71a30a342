"""Writes GridSample as Gathers of the elements around each point of the grid, weighed and added in the kernel's order.

Source: ONNX Runtime's core/providers/cpu/tensor/grid_sample.cc. All is computed with the channels last: coordinates and
weights have a last axis of length 1, by which they are broadcast to all channels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, iota, size_of, slice_axes, squeeze
from .folding import Folding, Operand
from .selecting import select

__all__ = ["Axis", "Sampler", "channel_rows", "length_of", "write_grid_taps"]

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass
class Axis:
    """A spatial axis: its coordinates in the input, its length minus 1, and how many elements one step of it is."""

    at: str
    last: Operand
    stride: Operand | None


@dataclass
class _Place:
    """Whole coordinates along one axis, as the number of the element there, and whether they lie inside the input."""

    number: str
    inside: str


class Sampler:
    """Samples images, whose elements are rows of channels, at coordinates that have a last axis of length 1."""

    def __init__(
        self,
        rw: LoweringRewriter,
        real: int,
        rows: str,
        *,
        rank: int,
        padding: str = "zeros",
        corners: bool = False,
        by_corner: bool = True,
    ) -> None:
        """Begin with the images' elements; `rank` is that of the coordinates, `real` their element type.

        `by_corner`: a linear sample is the sum of each corner by the product of its weights, else it is nested.
        """
        self.rw, self.f = rw, Folding(rw)
        self.real, self.rows, self.rank = real, rows, rank
        self.padding, self.corners, self.by_corner = padding, corners, by_corner
        self.numpy = np.float64 if real == TensorProto.DOUBLE else np.float32
        self.zero = rw.constant(np.zeros(1, rw.numpy_type(rows)), "zero")
        self.axes: list[Axis] = []
        """The spatial axes, the outermost first."""
        self.batch = ""
        """The number of the first element of each image, "" for one image."""

    def number(self, value: float) -> Operand:
        """Return a number of the coordinates' type."""
        return np.array([value], self.numpy)

    def set_images(self, count: str, plane: Operand) -> None:
        """Say how many images there are, and how many elements each has."""
        first = self.rw.before("Mul", [iota(self.rw, count), self.f.name(plane)], hint="batch")
        self.batch = self.rw.before(
            "Reshape", [first, integers(self.rw, -1, *[1] * (self.rank - 1))], hint="batch"
        )

    def place(self, axis: Axis, at: Operand) -> _Place:
        """Return the elements at whole coordinates; those outside are, by padding mode, others or marked as outside."""
        f, rw = self.f, self.rw
        if self.padding == "reflection":
            at = self._reflected(axis, at)
        # Compared so that NaN becomes an index inside.
        low = f("Where", f("Less", at, axis.last), at, axis.last)
        index = f("Where", f("Greater", low, self.number(0)), low, self.number(0))
        number = f.cast(index, TensorProto.INT64)
        if axis.stride is not None:
            number = f("Mul", number, axis.stride)
        inside = ""
        if self.padding == "zeros":
            half = self.number(0.5)
            above = f("Greater", at, self.number(-0.5))
            inside = rw.before(
                "And", [f.name(above), f.name(f("Less", at, f("Add", axis.last, half)))], hint="inside"
            )
        return _Place(f.name(number), inside)

    def _reflected(self, axis: Axis, at: Operand) -> Operand:
        """Mirror coordinates at both borders until they lie inside."""
        f = self.f
        edge = self.number(0) if self.corners else self.number(0.5)
        low, high = f("Sub", self.number(0), edge), f("Add", axis.last, edge)
        span = f("Sub", high, low)
        beyond = f("Max", f("Sub", low, at), f("Sub", at, high))
        times = f("Floor", f("Div", beyond, span))
        rest = f("Sub", beyond, f("Mul", times, span))
        odd = f("Sub", times, f("Mul", self.number(2), f("Floor", f("Div", times, self.number(2)))))
        # From the low border: coordinates below it that are mirrored an even number of times, or above it an odd one.
        below = f.cast(f("Less", at, low), self.real)
        from_low = f("Greater", f("Abs", f("Sub", below, odd)), self.number(0.5))
        mirrored = f("Where", from_low, f("Add", low, rest), f("Sub", high, rest))
        return f("Where", f("Greater", beyond, self.number(0)), mirrored, at)

    def pixel(self, places: list[_Place]) -> str:
        """Return the elements of all channels where the coordinates along all axes meet."""
        rw = self.rw
        number = places[0].number
        for place in places[1:]:
            number = rw.before("Add", [number, place.number], hint="number")
        if self.batch:
            number = rw.before("Add", [number, self.batch], hint="number")
        taken = rw.before("Gather", [self.rows, squeeze(rw, number, [self.rank - 1])], hint="pixel", axis=0)
        if not places[0].inside:
            return taken
        inside = places[0].inside
        for place in places[1:]:
            inside = rw.before("And", [inside, place.inside], hint="inside")
        return select(rw, rw.before("Not", [inside], hint="outside"), self.zero, taken)

    def nearest(self) -> str:
        """Return the elements nearest to the coordinates."""
        return self.pixel(
            [self.place(axis, self.rw.before("Round", [axis.at], hint="nearest")) for axis in self.axes]
        )

    def linear(self) -> str:
        """Return the elements around the coordinates, by their distance."""
        f, rw = self.f, self.rw
        sides: list[list[tuple[_Place, Operand]]] = []
        for axis in self.axes:
            at = axis.at
            first = f("Floor", at)
            second = f("Add", first, self.number(1))
            sides.append(
                [
                    (self.place(axis, first), f("Sub", second, at)),
                    (self.place(axis, second), f("Sub", at, first)),
                ]
            )
        if not self.by_corner:
            return f.name(self._nested(sides, []))
        total = ""
        for row, by_row in sides[0]:
            for column, by_column in sides[1]:
                weight = f("Mul", by_row, by_column)
                term = rw.before("Mul", [f.name(weight), self.pixel([row, column])], hint="term")
                total = rw.before("Add", [total, term], hint="sum") if total else term
        return total

    def _nested(self, sides: list[list[tuple[_Place, Operand]]], chosen: list[_Place]) -> Operand:
        if not sides:
            return self.pixel(chosen)
        total: Operand | None = None
        for place, weight in sides[0]:
            term = self.f("Mul", weight, self._nested(sides[1:], [*chosen, place]))
            total = term if total is None else self.f("Add", total, term)
        return total if total is not None else ""

    def cubic(self) -> str:
        """Return the elements around the coordinates, four along each axis, by the cubic weights of their distance."""
        f = self.f
        sides: list[list[tuple[_Place, Operand]]] = []
        for axis in self.axes:
            down = f("Floor", axis.at)
            # The kernel subtracts the first place of the four, and then 1.
            before = f("Sub", axis.at, f("Add", down, self.number(-1)))
            weights = self._cubic_weights(f("Sub", before, self.number(1)))
            places = [
                self.place(axis, f("Add", down, self.number(shift)) if shift else down)
                for shift in (-1, 0, 1, 2)
            ]
            sides.append(list(zip(places, weights, strict=True)))
        return f.name(self._nested(sides, []))

    def _cubic_weights(self, part: Operand) -> list[Operand]:
        f, a = self.f, -0.75
        rest = f("Sub", self.number(1), part)

        def far(distance: Operand) -> Operand:
            inner = f("Sub", f("Mul", self.number(a), distance), self.number(5 * a))
            inner = f("Add", f("Mul", inner, distance), self.number(8 * a))
            return f("Sub", f("Mul", inner, distance), self.number(4 * a))

        def near(distance: Operand) -> Operand:
            inner = f("Sub", f("Mul", self.number(a + 2), distance), self.number(a + 3))
            return f("Add", f("Mul", f("Mul", inner, distance), distance), self.number(1))

        return [
            far(f("Add", part, self.number(1))),
            near(part),
            near(rest),
            far(f("Sub", self.number(2), part)),
        ]


def channel_rows(rw: LoweringRewriter, value: str, rank: int, count: str) -> str:
    """Return the elements of images as rows of their channels, of which there are `count` (int64 of shape [1])."""
    last = rw.before("Transpose", [value], hint="channels_last", perm=[0, *range(2, rank), 1])
    rows = rw.before("Concat", [integers(rw, -1), count], hint="rows", axis=0)
    return rw.before("Reshape", [last, rows], hint="rows")


def write_grid_taps(rw: LoweringRewriter, kind: str) -> None:
    """Replace a GridSample of mode `kind` (nearest, linear or cubic) by Gathers, weights and sums."""
    source = rw.input(0)
    rank, dtype = rw.need_rank(source), rw.need_dtype(source)
    padding, corners = str(rw.get("padding_mode", "zeros")), bool(rw.get("align_corners", 0))
    if dtype not in (*_FLOATS, TensorProto.FLOAT16, TensorProto.BFLOAT16) and kind != "nearest":
        rw.refuse(
            f"GridSample does not exist below opset {rw.version + 1}, and mode {kind} is computed of floats alone",
            code="no-equal",
            hint="cast its input to float in the model",
        )
    real = dtype if dtype in _FLOATS else TensorProto.FLOAT
    if kind == "nearest" and rw.dtype(rw.input(1)) in _FLOATS:
        real = rw.need_dtype(rw.input(1))
    moved = cast(rw, source, dtype if kind == "nearest" else real)
    rows = channel_rows(rw, moved, rank, size_of(rw, source, 1))
    by_corner = rank == 4 and padding == "zeros" and not corners
    sampler = Sampler(rw, real, rows, rank=rank, padding=padding, corners=corners, by_corner=by_corner)
    plane = _add_axes(sampler, cast(rw, rw.input(1), real))
    if (rw.shape(source) or (None,))[0] != 1:
        sampler.set_images(size_of(rw, source, 0), plane)
    value = {"nearest": sampler.nearest, "linear": sampler.linear, "cubic": sampler.cubic}[kind]()
    value = cast(rw, value, dtype)
    rw.after("Transpose", [value], [rw.output(0)], perm=[0, rank - 1, *range(1, rank - 1)])
    rw.remove()


def length_of(rw: LoweringRewriter, value: str, axis: int) -> Operand:
    """Return the length of an axis, int64 of shape [1]."""
    shape = rw.shape(value)
    known = None if shape is None else shape[axis]
    return np.array([known], np.int64) if known is not None else size_of(rw, value, axis)


def _add_axes(sampler: Sampler, grid: str) -> Operand:
    """Add the spatial axes; the grid has the coordinates of the innermost first. Returns the elements of an image."""
    rw, f = sampler.rw, sampler.f
    one, two = sampler.number(1), sampler.number(2)
    stride: Operand | None = None
    for number in range(sampler.rank - 2):
        length = length_of(rw, rw.input(0), sampler.rank - 1 - number)
        real = f.cast(length, sampler.real)
        last = f("Sub", real, one)
        place = f("Add", slice_axes(rw, grid, [number], [number + 1], [sampler.rank - 1]), one)
        if sampler.corners:
            at = f("Div", place, two)
            at = f("Mul", at, last)
        else:
            at = f("Div", f("Sub", f("Mul", place, real), one), two)
        sampler.axes.insert(0, Axis(f.name(at), last, stride))
        stride = length if stride is None else f("Mul", stride, length)
    return stride if stride is not None else np.ones(1, np.int64)
