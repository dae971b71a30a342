"""Which numbers, words and ties of an input a model treats differently, found from the nodes that its elements reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.corners.flow import Flow
from onnx_migrate.verify.inputs.corners.paths import Path
from onnx_migrate.verify.inputs.corners.thresholds import columns_at, compares_elements, numbers_at, words_at
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["Interest", "interest"]

_MOST = 96
"""Numbers of one input that are kept."""

_BESIDE = 1e-3
"""Distance from a threshold, as a share of the number, at which rounding does not move a number across it."""


@dataclass(frozen=True)
class Interest:
    """Numbers and texts of one input that a model treats specially.

    `numbers` are in the input's type, the likeliest first. `even` are numbers that all elements of an input must have together.
    `columns` has numbers by the index on the last axis. `ties` says that equal elements matter.
    """

    numbers: tuple[Any, ...] = ()
    even: tuple[Any, ...] = ()
    columns: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    ties: bool = False

    def joined(self, other: Interest) -> Interest:
        """Return the special numbers of either of two models, this one's numbers first."""
        both = {*self.columns, *other.columns}
        columns = {at: _union(self.columns.get(at, ()), other.columns.get(at, ())) for at in sorted(both)}
        return Interest(
            _union(self.numbers, other.numbers),
            _union(self.even, other.even),
            columns,
            _union(self.words, other.words),
            self.ties or other.ties,
        )


def _union(first: tuple[Any, ...], others: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys((*first, *others)))


def interest(flow: Flow, name: str, dtype: np.dtype[Any]) -> Interest:
    """Return the numbers and texts that the nodes of a model treat specially in an input of this type."""
    if dtype.kind == "b":
        return Interest()
    numbers: dict[Any, None] = {}
    even: dict[Any, None] = {}
    columns: dict[int, tuple[Any, ...]] = {}
    words: dict[str, None] = {}
    ties = False
    for meeting in flow.meetings(name):
        path, argument = meeting.path, meeting.argument
        if dtype.kind == "O":
            words.update(dict.fromkeys(words_at(argument)))
            continue
        ties = ties or compares_elements(argument)
        by_column = columns_at(argument)
        # Trees compare columns separately.
        if by_column and path.in_place:
            columns = {
                at: tuple(_all_around(path, column_numbers, dtype))
                for at, column_numbers in by_column.items()
            }
            continue
        wanted = numbers_at(argument) + [
            number for column_numbers in by_column.values() for number in column_numbers
        ]
        target = even if path.even else numbers
        target.update(dict.fromkeys(_all_around(path, wanted, dtype)))
    if dtype.kind in "iu":
        numbers.update(dict.fromkeys(_turns(flow, name, dtype)))
    return Interest(tuple(numbers)[:_MOST], tuple(even)[:_MOST], columns, tuple(words), ties)


def _turns(flow: Flow, name: str, dtype: np.dtype[Any]) -> Iterator[Any]:
    """Yield trip counts at which a loop's counter reaches the numbers that it is compared with, and passes them."""
    for counter in flow.turns(name):
        for meeting in flow.meetings(counter):
            for number in numbers_at(meeting.argument):
                last = meeting.path.to_input(number)
                if last is not None and 0 <= last < np.iinfo(dtype).max - 3:
                    yield from (dtype.type(int(last) + more) for more in (3, 1, 2, 0))


def _all_around(path: Path, numbers: Iterable[float], dtype: np.dtype[Any]) -> list[Any]:
    """Return the input's numbers around each of these, first those that are exactly at it, then those beside it."""
    rounds = zip_longest(*(_around(path, number, dtype) for number in numbers if path.numbers))
    return [number for group in rounds for number in group if number is not None]


def _around(path: Path, number: float, dtype: np.dtype[Any]) -> Iterator[Any]:
    """Yield the input's number that becomes this one, its neighbours, and numbers clearly below and above.

    It skips a number that becomes this one only by rounding: a correct result may round it to the other side.
    """
    source = path.to_input(number)
    # No number of the input becomes this one.
    if source is None:
        return
    if dtype.kind in "iu":
        yield from _whole_numbers(source, dtype)
        return
    exact = _within(source, dtype)
    if exact is not None and path.is_exact(number, exact):
        yield exact[()]
        yield from (_next(exact, end)[()] for end in (-np.inf, np.inf))
    # Numbers clearly on one side show a wrong comparison.
    for distance in (0.5 * abs(source) + 1, _BESIDE * max(abs(source), _BESIDE)):
        for beside in (source - distance, source + distance):
            near = _within(beside, dtype)
            yield None if near is None else near[()]


def _next(number: Array, end: float) -> Array:
    """Return the next normal number towards an end: processors may treat smaller ones as 0."""
    following = np.nextafter(number, number.dtype.type(end))
    least = np.finfo(number.dtype).tiny
    return np.asarray(np.copysign(least, end) if abs(following) < least else following).astype(number.dtype)


def _within(number: float, dtype: np.dtype[Any]) -> Array | None:
    with np.errstate(over="ignore"):
        nearest = np.asarray(number).astype(dtype)
    return nearest if np.isfinite(nearest) else None


def _whole_numbers(number: float, dtype: np.dtype[Any]) -> Iterator[Any]:
    ends, nearest = np.iinfo(dtype), round(number)
    for whole in (nearest, nearest - 1, nearest + 1):
        if ends.min <= whole <= ends.max:
            yield dtype.type(whole)
