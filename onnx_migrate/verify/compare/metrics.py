"""Computes the figures that people quote for the outputs of two models, one input after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx_migrate.verdicts import OutputMetrics
from onnx_migrate.verify.compare.values import paired
from onnx_migrate.verify.kernel.arrays import Array, in_blocks, is_float, widened

__all__ = ["Metrics"]

_CLASSES = 10
"""Least length of the last of three axes if that holds classes: a shorter one may hold the corners of boxes."""

_SUM = 1e-2
"""How far the sum of a row may be from 1 if the row holds probabilities: those of float16 are rounded."""


class Metrics:
    """Collects the outputs of two models on all inputs; `results` are the figures of each output."""

    def __init__(self) -> None:
        self._sums: dict[str, _Sums] = {}

    def add(self, output: str, original: Any, result: Any) -> None:
        """Take an output on one input into account. Tensors of another shape count as not equal."""
        # A container has several tensors, which are compared one by one.
        for part, ours, theirs in paired(output, original, result) or ():
            if ours is not None and theirs is not None:
                self._sums.setdefault(part, _Sums()).add(ours, theirs)

    def add_all(self, original: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Take all outputs on one input into account."""
        for name in original:
            if name in result:
                self.add(name, original[name], result[name])

    @property
    def results(self) -> tuple[OutputMetrics, ...]:
        """The figures of each output that has elements."""
        return tuple(sums.metrics(output) for output, sums in self._sums.items() if sums.total)


@dataclass
class _Sums:
    """Sums over the elements of one output on all inputs: squares, products, errors, and counts."""

    inputs: int = 0
    total: int = 0
    equal: int = 0
    elements: int = 0
    original: float = 0.0
    result: float = 0.0
    product: float = 0.0
    error: float = 0.0
    peak: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0
    lowest: float = 1.0
    rows: int = 0
    agreeing: int = 0
    has_numbers: bool = False

    def add(self, one: Array, other: Array) -> None:
        """Add the output on one input."""
        self.inputs += 1
        self.total += one.size
        if one.shape != other.shape:
            return
        self.equal += int(np.count_nonzero(_equal(one, other)))
        if one.dtype.kind in "OUSb" or one.dtype.kind == "c" or other.dtype.kind in "OUSbc":
            return
        self.has_numbers = True
        # The sums before this input give those of this input alone, for the lowest cosine.
        before = self.original, self.result, self.product
        for a, b in in_blocks(one, other):
            self._add_block(widened(a), widened(b))
        squares = (self.original - before[0]) * (self.result - before[1])
        self.lowest = min(self.lowest, _cosine(self.product - before[2], squares))
        self._add_rows(one, other)

    def _add_block(self, a: Array, b: Array) -> None:
        finite = np.isfinite(a) & np.isfinite(b)
        a, b = a[finite], b[finite]
        error = np.abs(b - a)
        self.elements += a.size
        self.original += float(np.dot(a, a))
        self.result += float(np.dot(b, b))
        self.product += float(np.dot(a, b))
        self.error += float(np.dot(error, error))
        self.peak = max(self.peak, float(np.max(np.abs(a), initial=0.0)))
        self.absolute = max(self.absolute, float(np.max(error, initial=0.0)))
        # A relative error has no meaning where the original is 0.
        nonzero = a != 0
        self.relative = max(self.relative, float(np.max(error[nonzero] / np.abs(a[nonzero]), initial=0.0)))

    def _add_rows(self, one: Array, other: Array) -> None:
        """Count the rows of scores whose largest element is the same; another of several equal ones counts as the same."""
        for row, same in zip(_rows(one), _rows(other), strict=False):
            # argmax of a row with NaN says nothing.
            without_nan = ~(np.isnan(row).any(axis=1) | np.isnan(same).any(axis=1))
            row, same = row[without_nan], same[without_nan]
            chosen = np.take_along_axis(row, np.argmax(same, axis=1)[:, None], axis=1)[:, 0]
            self.rows += len(row)
            self.agreeing += int(np.count_nonzero(chosen == row.max(axis=1)))

    def metrics(self, output: str) -> OutputMetrics:
        """Return the figures."""
        counts = output, self.inputs, self.elements, self.equal / self.total
        # Texts have no figures beyond the share of equal elements.
        if not (self.has_numbers and self.elements):
            return OutputMetrics(*counts)
        mean = self.error / self.elements
        return OutputMetrics(
            *counts,
            cosine=_cosine(self.product, self.original * self.result),
            lowest_cosine=self.lowest,
            snr=_decibels(self.original, self.error),
            psnr=_decibels(self.peak**2, mean),
            largest_absolute=self.absolute,
            largest_relative=self.relative,
            top1=self.agreeing / self.rows if self.rows else None,
            rows=self.rows,
        )


def _equal(one: Array, other: Array) -> Array:
    """Return which elements are equal; NaN equals NaN."""
    same = np.asarray(one == other)
    return (
        same | (np.isnan(widened(one)) & np.isnan(widened(other)))
        if is_float(one) and is_float(other)
        else same
    )


def _cosine(product: float, squares: float) -> float:
    """Return the cosine of an angle; 1 for two vectors of zeros, 0 if only one is."""
    if squares > 0:
        return max(-1.0, min(1.0, product / math.sqrt(squares)))
    return 1.0 if product == squares == 0 else 0.0


def _decibels(signal: float, error: float) -> float:
    if not error:
        return math.inf
    return 10 * math.log10(signal / error) if signal else -math.inf


def _rows(array: Array) -> Iterator[Array]:
    """Yield the rows of an output that is shaped like scores, as one array of rows and classes."""
    shape = _without_ones(array.shape)
    if (
        not is_float(array)
        or array.dtype.kind == "c"
        or not array.size
        or not 1 <= len(shape) <= 3
        or shape[-1] < 2
    ):
        return
    rows = widened(array).reshape(-1, shape[-1])
    if len(shape) < 3 or shape[-1] >= _CLASSES or np.all(np.abs(rows.sum(axis=1) - 1) < _SUM):
        yield rows


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    """Return a shape without axes of length 1 at its end, as pooling leaves them: [1, 1000, 1, 1] has 1000 classes."""
    trimmed = tuple(shape)
    while len(trimmed) > 2 and trimmed[-1] == 1:
        trimmed = trimmed[:-1]
    return trimmed
