"""How far the symbols reach: how many nodes have an output that depends on each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from .domain import Assignments, Value

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
    """The nodes with an output of which an axis, or a factor of a merged axis, is the symbol."""

    def count(self, outputs: Iterable[Value]) -> None:
        """Count one node by the values of its outputs."""
        dims = [dim for value in outputs for dim in value.dims or () if dim is not None]
        self.varying += any(dim.sizes[0] == dim.sizes[3] != dim.sizes[1] for dim in dims)
        sizes = {factor.sizes for dim in dims for factor in (dim, *dim.flat_factors())}
        self.by_symbol.update(symbol for symbol, own in self.assignments.sizes.items() if own in sizes)
