"""The grids among the tests: those of more than a few rows, of which a run may take a part."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Collection

__all__ = ["FEW", "is_chosen", "number", "row_of_grid"]

FEW = 4
"""The rows of a test up to which it is no grid: all of them run, unless `--few` says otherwise."""

_CHEAP = tuple(f"tests/{room}/" for room in ("facts", "model", "rewrite"))
"""Where rows take some milliseconds each, so that leaving some out would save nothing."""

_rows: dict[str, int] = {}
"""The number of each row of a grid, by the id of its test; the same in each process that runs a part of the tests."""

_shares: dict[str, float] = {}
"""Of each row of a grid the share of the grid's rows that come before it in the order of a hash."""


def number(grid: Collection[str], few: int) -> None:
    """Number the rows of a test, of which these are the ids; a run may take a part of them where they are more than `few`."""
    if len(grid) > FEW:
        _rows.update({test: row for row, test in enumerate(grid)})
    if len(grid) > few:
        _shares.update({test: place / len(grid) for place, test in enumerate(sorted(grid, key=_hash))})


def _hash(test: str) -> int:
    # Each release of Python takes other rows, so that the newest and the oldest versions see more of them together.
    return zlib.crc32(f"{test} {sys.version_info[:2]}".encode())


def row_of_grid(test: str) -> int | None:
    """Return which row of a grid a test is; None if it is none."""
    return _rows.get(test)


def is_chosen(test: str, every: int) -> bool:
    """Return whether a run of one row of `every` has a test; of each grid it has at least one row, of cheap ones all."""
    return test.startswith(_CHEAP) or _shares.get(test, 0.0) * every < 1
