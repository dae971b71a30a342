"""Inputs that stay in their files until a run needs them, so that a thousand sets of inputs take the memory of a few."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

__all__ = ["Reading", "StoredInputs", "bytes_of", "spaced"]

T = TypeVar("T")

_KEPT = 1 << 26
"""Bytes of inputs that a process keeps after it read them: each set is needed several times."""

Values = Mapping[str, Any]


class Reading(Protocol):
    """A function that reads the values of one feed by name. It pickles, so that a child process reads the values itself."""

    def __call__(self) -> Values:
        """Return the values. Raises UsageError if they cannot be read, or do not fit the model."""


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
    return [items[place * len(items) // most] for place in range(most)]


class _Cache:
    """The values that were read last, up to a number of bytes. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[StoredInputs, Values] = OrderedDict()
        self._bytes = 0

    def values_of(self, inputs: StoredInputs) -> Values:
        """Return the values of a feed, from memory if it was read lately."""
        with self._lock:
            if inputs in self._values:
                self._values.move_to_end(inputs)
                return self._values[inputs]
        values = inputs.read()
        with self._lock:
            self._add(inputs, values)
        return values

    def _add(self, inputs: StoredInputs, values: Values) -> None:
        if inputs in self._values:  # another thread read it at the same time
            return
        self._values[inputs] = values
        self._bytes += bytes_of(values)
        # The last feed stays whatever its size, because its inputs are asked for one after the other.
        while self._bytes > _KEPT and len(self._values) > 1:
            self._bytes -= bytes_of(self._values.popitem(last=False)[1])


_cache = _Cache()
