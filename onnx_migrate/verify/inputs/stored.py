"""Inputs that stay in their files until a run needs them, so that a thousand sets of inputs take the memory of a few."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

__all__ = ["FileReading", "Reading", "StoredInputs", "bytes_of", "spaced"]

T = TypeVar("T")

_KEPT = 1 << 24
"""Bytes of inputs that a process keeps after it read them: each set is needed several times."""

Values = Mapping[str, Any]


class Reading(Protocol):
    """A function that reads the values of one feed by name. It pickles, so that a child process reads the values itself."""

    def __call__(self) -> Values:
        """Return the values. Raises UsageError if they cannot be read, or do not fit the model."""


@dataclass(frozen=True)
class FileReading:
    """Reads one value from each file, by the names of the values. `read` is a function of a module, which pickles."""

    names: tuple[str, ...]
    paths: tuple[Path, ...]
    read: Callable[[Path], Any]

    def __call__(self) -> Values:
        """Return the values by name. Raises UsageError for a file that cannot be read."""
        return dict(zip(self.names, map(self.read, self.paths), strict=True))


class StoredInputs(Mapping[str, Any]):
    """The values of one feed by name, read from their files when somebody asks for one."""

    def __init__(self, names: tuple[str, ...], read: Reading) -> None:
        self.names, self.read = names, read

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        return _cache.values_of(self)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    # Two feeds are equal if they are one object: a comparison of their values would read both.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def bytes_of(values: Values) -> int:
    """Return the bytes of arrays, and 8 for each other value."""
    return sum(value.nbytes if isinstance(value, np.ndarray) else 8 for value in values.values())


def spaced(items: Sequence[T], most: int) -> list[T]:
    """Return at most so many items, evenly spaced, because files of one kind often follow each other."""
    if len(items) <= most:
        return list(items)
    return [items[index * len(items) // most] for index in range(most)]


class _Cache:
    """The values of the first feeds up to a number of bytes, while these exist, and of the last one. Threads share it.

    The first ones stay, since runs take all feeds in order: a cache of the last ones would never have the next one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._first: WeakKeyDictionary[StoredInputs, Values] = WeakKeyDictionary()
        self._last: tuple[StoredInputs | None, Values] = (None, {})

    def values_of(self, inputs: StoredInputs) -> Values:
        """Return the values of a feed, from memory if they are there."""
        with self._lock:
            last, values = self._last
            stored_values = values if last is inputs else self._first.get(inputs)
        if stored_values is not None:
            return stored_values
        values = inputs.read()
        with self._lock:
            if sum(map(bytes_of, self._first.values())) + bytes_of(values) <= _KEPT:
                self._first[inputs] = values
            else:
                self._last = inputs, values
        return values


_cache = _Cache()
