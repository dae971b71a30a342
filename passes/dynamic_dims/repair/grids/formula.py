"""A formula for a table: positions along axes of a feature map, and the steps of arithmetic that turn them into numbers.

The same formula is evaluated with numpy, to compare it with the constant, and written as nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..domain import Array, Dim

__all__ = ["Formula", "Lengths", "Quantity", "Selector", "Step", "evaluate"]


@dataclass(frozen=True)
class Lengths:
    """For each column of a table one length: the dim whose mask is 1 for the column, or 1 if no mask is."""

    masks: tuple[tuple[Dim, Array], ...]

    @property
    def rest(self) -> Array:
        """Return 1 for the columns that no mask selects, else 0."""
        return np.asarray(1 - sum(mask for _, mask in self.masks))


@dataclass(frozen=True)
class Quantity:
    """A number for each column: a constant, which may be multiplied by one length and divided by another.

    `less` is subtracted from these lengths, for a grid from edge to edge.
    """

    constant: Array
    times: Lengths | None = None
    over: Lengths | None = None
    less: Array | None = None


@dataclass(frozen=True)
class Step:
    """One operation on the numbers so far.

    - Add, Mul, Div, Min and Max have an operand.
    - "Waves" has a mask that is 1 for a sine and 0 for a cosine.
    - "Logit" has the margin of valid proportions. `fill` is the number for all columns of a row that has an invalid one.
    - "Valid" has this margin too, and is 1 for a row of valid proportions, else 0.
    """

    operator: str
    operand: Quantity
    fill: float | None = None
    row_axis: int = -1
    """The axis of columns that one row of the table has, for a Logit."""


@dataclass(frozen=True)
class Selector:
    """The positions 0, 1, 2, ... along one axis, multiplied by a factor for each column."""

    axis: int
    factor: Array


@dataclass(frozen=True)
class Formula:
    """The numbers of one feature map: a sum of positions, then the steps, computed in `dtype` and cast to the table's type.

    `axes` are the axes of the result: a dim, or a number for an axis of columns.
    """

    axes: tuple[Dim | int, ...]
    selectors: tuple[Selector, ...]
    steps: tuple[Step, ...]
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float32))


_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
}


def evaluate(formula: Formula) -> Array:
    """Return the numbers of a formula at the sizes of the source model."""
    shape = [axis.frozen if isinstance(axis, Dim) else axis for axis in formula.axes]
    numbers = np.zeros((), formula.dtype)
    for selector in formula.selectors:
        along = np.ones(len(shape), np.int64)
        along[selector.axis] = shape[selector.axis]
        positions = np.arange(shape[selector.axis]).astype(formula.dtype).reshape(along)
        numbers = np.asarray(numbers + positions * selector.factor.astype(formula.dtype))
    # The logit of 0 or 1 is infinite until the fill replaces it.
    with np.errstate(all="ignore"):
        for step in formula.steps:
            numbers = _after(numbers, step, formula.dtype)
    return np.broadcast_to(numbers, shape)


def _after(numbers: Array, step: Step, dtype: np.dtype[Any]) -> Array:
    operand = _number(step.operand, dtype)
    if step.operator == "Waves":
        return np.asarray(np.sin(numbers) * operand + np.cos(numbers) * (1 - operand), dtype)
    if step.operator == "Valid":
        return np.asarray(_valid(numbers, operand, step.row_axis), dtype)
    if step.operator == "Logit":
        return _logits(numbers, operand, step.fill, step.row_axis)
    return np.asarray(_OPERATORS[step.operator](numbers, operand), dtype)


def _logits(numbers: Array, margin: Array, fill: float | None, axis: int) -> Array:
    logits = np.log(numbers / (1 - numbers))
    if fill is None:
        return np.asarray(logits, numbers.dtype)
    return np.asarray(np.where(_valid(numbers, margin, axis), logits, fill), numbers.dtype)


def _valid(numbers: Array, margin: Array, axis: int) -> Array:
    return np.asarray(((numbers > margin) & (numbers < 1 - margin)).all(axis=axis, keepdims=True))


def _number(quantity: Quantity, dtype: np.dtype[Any]) -> Array:
    number = quantity.constant.astype(dtype)
    if quantity.times is not None:
        number = number * _length(quantity.times, quantity.less, dtype)
    if quantity.over is not None:
        number = number / _length(quantity.over, quantity.less, dtype)
    return np.asarray(number, dtype)


def _length(lengths: Lengths, less: Array | None, dtype: np.dtype[Any]) -> Array:
    length = lengths.rest.astype(dtype)
    for dim, mask in lengths.masks:
        length = length + np.asarray(dim.frozen, dtype) * mask.astype(dtype)
    return np.asarray(length if less is None else length - less.astype(dtype), dtype)


def columns_of(axes: Sequence[Dim | int]) -> list[int]:
    """Return the shape of one number for each column: 1 along the axes of a feature map."""
    return [1 if isinstance(axis, Dim) else axis for axis in axes]
