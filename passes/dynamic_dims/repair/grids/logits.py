"""Anchors as logits of proportions, as in RT-DETR: log(p / (1 - p)) of the centre of each cell and of a share of the image.

Rows with a proportion near 0 or 1 are not valid: all their columns hold one number, mostly infinity. A second constant, the
mask of valid rows, follows from the same proportions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..domain import Array
from .formula import Formula, Lengths, Quantity, Selector, Step
from .laws import Law, nearest_law
from .structure import Segment

__all__ = ["logit_law", "valid_mask_law"]

_MARGIN = 0.01
"""The margin that programs keep: a row is valid if its proportions are more than this and less than 1 minus this."""


def logit_law(parts: Sequence[Segment]) -> Law | None:
    """Return the law of a table of logits; None if it is no such table.

    The margin of valid rows is the published one, so a table with another margin does not fit.
    """
    if any(part.array.dtype.kind != "f" or len(part.map_axes) != 2 for part in parts):
        return None
    row_axis = max(parts[0].own, default=-1)
    if row_axis < 0 or any(part.array.shape[row_axis] != 4 for part in parts):
        return None
    fill = _fill(parts)
    formulas = []
    for part in parts:
        sizes = _valid_row(part, row_axis, fill)
        if sizes is None:
            return None
        formulas.append(_formula(part, row_axis, sizes, fill))
    return nearest_law(
        iter([tuple(formulas)]), [part.array for part in parts], "logits of proportions", ulps=64
    )


def valid_mask_law(parts: Sequence[Segment]) -> Law | None:
    """Return the law of the mask of valid rows, 1 for each row whose proportions are valid; None if it is no such mask."""
    if any(len(part.map_axes) != 2 or part.axes[-1] != 1 for part in parts) or all(
        part.array.all() for part in parts
    ):
        return None
    formulas = []
    for part in parts:
        shape = [1] * (part.array.ndim - 1) + [2]
        across, down = (np.array(mask, np.int64).reshape(shape) for mask in ([1, 0], [0, 1]))
        rows, columns = part.map_axes
        lengths = Lengths(((part.dim(columns), across), (part.dim(rows), down)))
        steps = (
            Step("Add", Quantity(np.full((), 0.5))),
            Step("Div", Quantity(np.ones(()), times=lengths)),
            Step("Valid", Quantity(np.full((), _MARGIN)), row_axis=part.array.ndim - 1),
        )
        formulas.append(Formula(part.axes, (Selector(rows, down), Selector(columns, across)), steps))
    return nearest_law(iter([tuple(formulas)]), [part.array for part in parts], "the mask of valid anchors")


def _fill(parts: Sequence[Segment]) -> float | None:
    """Return the number of rows that are not valid: infinity, or the largest of the type; None if all are valid."""
    largest = max(float(part.array.max()) for part in parts)
    # The margin keeps the logit of a valid row below 5, so a huge number marks the others.
    return largest if largest > 1e4 else None


def _valid_row(part: Segment, row_axis: int, fill: float | None) -> Array | None:
    """Return the two sizes of boxes, from the row in the middle of the feature map; None if that is not valid."""
    middle = tuple(
        slice(part.dim(axis).frozen // 2, part.dim(axis).frozen // 2 + 1)
        if axis in part.map_axes
        else slice(None)
        for axis in range(part.array.ndim)
    )
    row = part.array[middle].astype(np.float64)
    if fill is not None and (row >= fill).any():
        return None
    with np.errstate(all="ignore"):
        shares = 1 / (1 + np.exp(-row))
    # The logits are rounded, and programs write these shares with few decimals.
    return np.asarray(np.round(shares, 6))


def _formula(part: Segment, row_axis: int, shares: Array, fill: float | None) -> Formula:
    rows, columns = part.map_axes
    shape = shares.shape
    index = np.arange(4).reshape([4 if axis == row_axis else 1 for axis in range(len(shape))])
    across, down = (np.broadcast_to(index == axis_index, shape).astype(np.int64) for axis_index in (0, 1))
    lengths = Lengths(((part.dim(columns), across), (part.dim(rows), down)))
    moves = (across + down).astype(bool)
    steps = (
        Step("Add", Quantity(np.where(moves, 0.5, 0.0))),
        Step("Div", Quantity(np.ones(()), times=lengths)),
        Step("Add", Quantity(np.where(moves, 0.0, shares))),
        Step("Logit", Quantity(np.full((), _MARGIN)), fill, row_axis),
    )
    return Formula(part.axes, (Selector(rows, down), Selector(columns, across)), steps)
