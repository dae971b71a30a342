"""Writes a Resize as Gathers of the elements that it samples, with their weights: below opset 11 it has fewer modes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value
from onnx_migrate.rewrite.resize.spec import Axis, ResizeSpec, Sampling, scales_index

from .resize_reading import resampled
from .resize_sampling import (
    AxisValues,
    Tap,
    antialias_matrix,
    antialiased,
    array_of,
    coordinates,
    cubic,
    linear,
    nearest,
    outside,
    shaped,
)

__all__ = ["axis_values", "resampled_by_taps"]

_LARGEST_PRODUCT = 4096
"""Elements of a product of weights that is stored; a larger one is computed at run time, by one Mul."""


def axis_values(op: Op, spec: ResizeSpec) -> list[AxisValues]:
    """Return the axes to resample; nodes compute lengths, sizes and scales that are not known."""
    return [_values(op, spec, axis) for axis in resampled(spec)]


def _values(op: Op, spec: ResizeSpec, axis: Axis) -> AxisValues:
    at = spec.places.index(axis.place) if axis.place in spec.places else 0
    real, whole = TensorProto.FLOAT, TensorProto.INT64
    constant_length = None if axis.length is None else op.constant([axis.length])
    length = _element(op, op.Shape(op.input(0)), axis.place) if constant_length is None else constant_length
    scale = None if axis.scale is None else op.constant(np.array([axis.scale], np.float32))
    size = None if axis.size is None else op.constant([axis.size])
    if spec.by_sizes and not axis.kept:
        size = _element(op, op.input(3), at) if size is None else size
        scale = size.cast(real) / length.cast(real) if scale is None else scale
    else:
        scale = _element(op, op.input(scales_index(op.rw)), at) if scale is None else scale
        size = op.Floor(length.cast(real) * scale).cast(whole) if size is None else size
    return AxisValues(axis.place, length, size, scale, _region(op, spec, axis, at), axis.fixed)


def _region(op: Op, spec: ResizeSpec, axis: Axis, at: int) -> tuple[Value, Value]:
    """Return the start and end of the region along an axis, as float32."""
    roi = op.input(1)
    if axis.roi is not None or roi is None:
        start, end = (np.array([edge], np.float32) for edge in axis.roi or (0, 1))
        return op.constant(start), op.constant(end)
    roi = roi if roi.need_dtype() == TensorProto.FLOAT else roi.cast(TensorProto.FLOAT)
    return _element(op, roi, at), _element(op, roi, len(spec.places) + at)


def _element(op: Op, vector: Value | None, at: int) -> Value:
    """Return one element of a vector, as a vector."""
    return op.Gather(vector, [at], axis=0)


@np.errstate(all="ignore")
def resampled_by_taps(op: Op, spec: ResizeSpec) -> Value:
    """Return the input as the Resize gives it, axis by axis."""
    axes, sampling, value = axis_values(op, spec), spec.sampling, op.input(0)
    assert value is not None
    rank = value.need_rank()
    typed = sampling.mode != "nearest" or sampling.crops
    dtype = value.need_dtype() if typed else TensorProto.FLOAT
    real = TensorProto.DOUBLE if dtype == TensorProto.DOUBLE else TensorProto.FLOAT
    ats = [coordinates(op, axis, sampling.coordinates) for axis in axes]
    taps = _Taps(op, axes, ats, sampling, rank, real)
    if sampling.mode == "nearest":
        for axis, at in zip(axes, ats, strict=True):
            value = op.Gather(value, nearest(op, axis, at, sampling.rounding), axis=axis.place)
    else:
        value = value if dtype == real else op.Cast(value, to=real)
        if sampling.antialias:
            value = taps.antialiased(value)
        else:
            value = taps.linear(value) if sampling.mode == "linear" else taps.cubic(value)
        value = value if dtype == real else op.Cast(value, to=dtype)
    return taps.extrapolated(value, dtype) if sampling.crops else value


@dataclass(frozen=True)
class _Taps:
    """The axes to resample, with the coordinates along each, and the element type `real` of the sums."""

    op: Op
    axes: list[AxisValues]
    ats: list[Value]
    sampling: Sampling
    rank: int
    real: int

    def linear(self, value: Value) -> Value:
        """Weigh the corners around each coordinate and add them in the kernel's order, the last axis changing fastest."""
        corners: list[tuple[Value, list[Value]]] = [(value, [])]
        for axis, at in zip(self.axes, self.ats, strict=True):
            taps = [(index, self._along(axis, weights)) for index, weights in linear(self.op, axis, at)]
            corners = [
                (self.op.Gather(corner, index, axis=axis.place), [weights, *others])
                for corner, others in corners
                for index, weights in taps
            ]
        products: dict[tuple[str, str], Value] = {}
        total: Value | None = None
        for corner, (weight, *factors) in corners:
            for factor in factors:
                weight = self._product(weight, factor, products)
            term = corner * weight
            total = term if total is None else total + term
        return value if total is None else total

    def _product(self, a: Value, b: Value, products: dict[tuple[str, str], Value]) -> Value:
        """Return a product of weights: a constant if it is small, else a node, which is written once."""
        if a.array is not None and b.array is not None and a.array.size * b.array.size <= _LARGEST_PRODUCT:
            return a * b
        key = (a.name, b.name)
        if key not in products:
            products[key] = a.as_written() * b
        return products[key]

    def cubic(self, value: Value) -> Value:
        """Interpolate the axes, from the last to the first, as the kernel does.

        With exclude_outside the kernel divides the weights of the last axis, and the products of the other axis.
        """
        last = True
        for axis, at in reversed(list(zip(self.axes, self.ats, strict=True))):
            taps, divisor = cubic(self.op, axis, at, self.sampling)
            if last and divisor is not None:
                divided = ((index, weights / divisor) for index, weights in taps)
                value = self._sum(value, axis, divided)
            else:
                value = self._sum(value, axis, taps, divisor)
            last = False
        return self._not_minus_zero(value)

    def antialiased(self, value: Value) -> Value:
        """Filter the last axis first: by all elements that its filter reaches, or by a matrix computed at run time."""
        for axis in reversed(self.axes):
            if not axis.fixed:
                value = self._by_matrix(value, axis)
            elif array_of(axis.length)[0] != array_of(axis.size)[0]:
                value = self._sum(value, axis, antialiased(self.op, axis, self.sampling))
        return self._not_minus_zero(value)

    def _sum(
        self, value: Value, axis: AxisValues, taps: Iterable[Tap], divisor: Value | None = None
    ) -> Value:
        """Return the sum of the elements by their weights; each product is divided, if there is a divisor."""
        total: Value | None = None
        for index, weights in taps:
            term = self.op.Gather(value, index, axis=axis.place) * self._along(axis, weights)
            if divisor is not None:
                term = term / self._along(axis, divisor)
            total = term if total is None else total + term
        return value if total is None else total

    def _along(self, axis: AxisValues, weights: Value) -> Value:
        """Return weights in the type of the sums, shaped to be multiplied along an axis."""
        typed = weights.cast(self.real) if weights.array is not None else self.op.Cast(weights, to=self.real)
        return shaped(typed, self.rank - 1 - axis.place)

    def _by_matrix(self, value: Value, axis: AxisValues) -> Value:
        """Multiply an axis, which is exchanged with the last but one, by a matrix of weights."""
        op, row, inner = self.op, axis.place, self.rank - 2
        matrix = op.Cast(antialias_matrix(op, axis, self.sampling), to=self.real)
        perm = list(range(self.rank))
        perm[row], perm[inner] = inner, row
        if row == inner:
            return matrix @ value
        return op.Transpose(matrix @ op.Transpose(value, perm=perm), perm=perm)

    def _not_minus_zero(self, value: Value) -> Value:
        """Add 0, since the kernel's sums start from 0: if all terms are -0, the kernel returns 0."""
        return value + self.op.constant(np.zeros(1, np.float32)).cast(self.real)

    def extrapolated(self, value: Value, dtype: int) -> Value:
        """Write the extrapolation value for coordinates outside the input."""
        out: Value | None = None
        for axis, at in zip(self.axes, self.ats, strict=True):
            beyond = outside(self.op, axis, at)
            if beyond.array is None or beyond.array.any():
                along = shaped(beyond, self.rank - 1 - axis.place)
                out = along if out is None else self.op.Or(out, along)
        if out is None:
            return value
        filler = self.op.constant(np.array([self.sampling.extrapolation_value], np.float32)).cast(dtype)
        return self.op.select(out, filler, value)
