"""The rows of parametrized tests: a plain run takes enough rows to try each value of each parameter."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, TypeVar

import pytest

__all__ = ["choose", "number", "row_of_grid", "runs_all"]

_GRID = 5
"""A test of so many rows is a grid: each of its rows runs in the plain setting and in one other, in turn."""

_rows: dict[str, int] = {}
"""The number of each row of a grid, by the id of its test. It is the same in each process that runs a part of the tests."""


class Call(Protocol):
    """A row of a parametrized test, as pytest has it (`_pytest.python.CallSpec2`)."""

    params: Mapping[str, object]
    marks: Sequence[pytest.Mark]

    @property
    def id(self) -> str:
        """Return the text in the brackets of the test's id."""


CallT = TypeVar("CallT", bound=Call)


def runs_all(config: pytest.Config) -> bool:
    """Return whether a run takes all rows: with `--all`, of a test that the command names, or those that `-k` chooses."""
    return bool(
        config.getoption("all") or config.option.keyword or any("::" in argument for argument in config.args)
    )


def choose(calls: Sequence[CallT], test: str, share: int) -> list[CallT]:
    """Return rows of a test, in its order, that together have each value of each parameter; a hash decides which.

    With a `share`, which the mark `sample` gives, they are one row in so many. Rows with a mark of their own stay.
    """
    unmarked = sorted(
        (call for call in calls if not call.marks), key=lambda call: _hash(f"{test}[{call.id}]")
    )
    chosen = {id(call) for call in (unmarked[: -(-len(unmarked) // share)] if share else _covering(unmarked))}
    return [call for call in calls if call.marks or id(call) in chosen]


def _covering(calls: Sequence[CallT]) -> list[CallT]:
    """Return each row that has a value which no row before it has."""
    tried: set[tuple[str, str]] = set()
    covering = []
    for call in calls:
        values = {(name, repr(value)) for name, value in call.params.items()}  # not all values are hashable
        if not values <= tried:
            tried |= values
            covering.append(call)
    return covering


def _hash(text: str) -> int:
    # Each release of Python chooses other rows, so that the newest and the oldest versions see more of them together.
    return zlib.crc32(f"{text} {sys.version_info[:2]}".encode())


def number(tests: Collection[str]) -> None:
    """Number the rows of a test by their ids."""
    if len(tests) >= _GRID:
        _rows.update({test: row for row, test in enumerate(tests)})


def row_of_grid(test: str) -> int | None:
    """Return which row of a grid a test is; None if it is none."""
    return _rows.get(test)
