"""How far the symbols reach: how many nodes have an output that changes with each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .domain import Assignments, Sizes, Value

__all__ = ["Coverage"]


@dataclass
class Coverage:
    """Counts over the nodes that one interpretation visited; a node in a function counts once for each call."""

    assignments: Assignments
    visited: int = 0
    """The nodes visited."""
    varying: int = 0
    """The nodes with an output that varies with a symbol that is not a batch."""
    by_symbol: Counter[str] = field(default_factory=Counter)
    """The nodes with an output of which an axis changes with the symbol."""
    _symbols: dict[Sizes, list[str]] = field(default_factory=dict, repr=False)

    def count(self, outputs: Iterable[Value]) -> None:
        """Count one node by the values of its outputs."""
        dims = [dim for value in outputs for dim in value.dims or () if dim is not None]
        self.varying += any(dim.sizes[0] == dim.sizes[3] != dim.sizes[1] for dim in dims)
        found: set[str] = set()
        for dim in dims:
            if dim.varies:
                if dim.sizes not in self._symbols:
                    self._symbols[dim.sizes] = self.assignments.symbols_in(dim)
                found.update(self._symbols[dim.sizes])
        self.by_symbol.update(found)
