"""Sine position encodings: each column is the sine or cosine of a position along one axis, at a frequency of its own.

The frequencies of one axis are temperature ** (-j / count). Positions start at 0, 1 or 0.5, and may be scaled to angles
of one turn over the axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..domain import Array
from .columns import Columns
from .formula import Formula, Lengths, Quantity, Selector, Step
from .laws import AmbiguousSizes, Law, nearest_law

__all__ = ["wave_law"]

_TEMPERATURES = (10000.0, 20.0)
"""The temperatures of the published encodings."""
_OFFSETS = (0.0, 1.0, 0.5)
_NEAR = 1e-4
"""How far a sine may be from a column: float32 rounds an angle of 100 by 4e-6, and half precision computes more coarsely."""


@dataclass(frozen=True)
class _Waves:
    """The law of the columns that follow one axis: the frequency of each column, and whether it is a sine."""

    frequencies: Array
    sines: Array


def wave_law(parts: Sequence[Columns], is_square: bool) -> Law | None:
    """Return the law of a table of sines and cosines; None if it is no such table.

    Raises AmbiguousSizes for a table of a square map that may go through the map row by row or column by column. Published
    code writes the encoding of the column index first, and all its sines before the cosines.
    """
    if any((np.abs(columns.segment.array.astype(np.float64)) > 1 + 1e-6).any() for columns in parts):
        return None
    if any(columns.segment.array.dtype.kind != "f" for columns in parts):
        return None
    if any(len(columns.follows) != 2 or (columns.follows[0] & columns.follows[1]).any() for columns in parts):
        return None
    for temperature in _TEMPERATURES:
        for offset in _OFFSETS:
            for turns in (False, True):
                waves = [_waves_of(columns, temperature, offset, turns=turns) for columns in parts]
                known_waves = [each for each in waves if each is not None]
                if len(known_waves) == len(parts):
                    if is_square and any(map(_may_be_turned, parts, known_waves)):
                        raise AmbiguousSizes
                    arrays = [columns.segment.array for columns in parts]
                    orders = _orders(parts, known_waves, offset, turns=turns)
                    return nearest_law(orders, arrays, "a sine position encoding", ulps=_NEAR * 2**23)
    return None


def _may_be_turned(columns: Columns, waves: _Waves) -> bool:
    """Return whether the first columns follow the rows, and their sines are not in turn with cosines."""
    down, sines = columns.follows[0].reshape(-1), waves.sines.reshape(-1)
    half = len(down) // 2
    return bool(down[:half].all() and sines[: half // 2].all() and half > 2)


def _waves_of(columns: Columns, temperature: float, offset: float, *, turns: bool) -> _Waves | None:
    array = columns.segment.array.astype(np.float64)
    maps = columns.segment.map_axes
    frequencies = np.zeros(columns.first.shape)
    sines = np.zeros(columns.first.shape, bool)
    for role, axis in enumerate(maps):
        follows = columns.follows[role]
        count = int(follows.sum()) // 2
        if not count or columns.length(role) < 2:
            return None
        positions = np.arange(columns.length(role)) + offset
        if turns:
            positions = positions / columns.length(role) * 2 * math.pi
        angles = temperature ** -(np.arange(count) / count)[:, None] * positions
        rows = np.moveaxis(array.take([0], maps[1 - role]), axis, -1).reshape(-1, len(positions))
        for index in np.flatnonzero(follows.reshape(-1)):
            wave = _matching(rows[index], angles)
            if wave is None:
                return None
            frequencies.reshape(-1)[index] = temperature ** -(wave[0] / count)
            sines.reshape(-1)[index] = wave[1]
    return _Waves(frequencies, sines)


def _matching(row: Array, angles: Array) -> tuple[int, bool] | None:
    """Return the frequency and whether it is a sine, of the first wave that a row of numbers is."""
    for is_sine, waves in ((True, np.sin(angles)), (False, np.cos(angles))):
        near = np.abs(waves - row).max(axis=1)
        best = int(near.argmin())
        if near[best] <= _NEAR:
            return best, is_sine
    return None


def _orders(
    parts: Sequence[Columns], waves: Sequence[_Waves], offset: float, *, turns: bool
) -> Iterator[tuple[Formula, ...]]:
    # Programs divide by the inverse of a frequency or multiply by it, and both round differently.
    for inverse in (True, False):
        yield tuple(
            _formula(columns, each, offset, turns=turns, inverse=inverse)
            for columns, each in zip(parts, waves, strict=True)
        )


def _formula(columns: Columns, waves: _Waves, offset: float, *, turns: bool, inverse: bool) -> Formula:
    maps = columns.segment.map_axes
    pairs = list(zip(maps, columns.follows, strict=True))
    selectors = tuple(Selector(axis, follows.astype(np.int64)) for axis, follows in pairs)
    steps = [Step("Add", Quantity(np.full((), offset)))] if offset else []
    if turns:
        lengths = Lengths(
            tuple((columns.segment.dim(axis), follows.astype(np.int64)) for axis, follows in pairs)
        )
        steps.append(Step("Div", Quantity(np.ones(()), times=lengths)))
        steps.append(Step("Mul", Quantity(np.full((), 2 * math.pi))))
    # A column that follows no axis has no frequency, and must not divide by 0.
    usable = np.where(waves.frequencies > 0, waves.frequencies, 1.0)
    operand = 1 / usable if inverse else usable
    steps.append(Step("Div" if inverse else "Mul", Quantity(operand)))
    steps.append(Step("Waves", Quantity(waves.sines.astype(np.int64))))
    return Formula(columns.segment.axes, selectors, tuple(steps))
