"""The values that an input may have, and how what two nodes accept combines."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["BOOLEAN", "POSITIVE", "Range"]


@dataclass(frozen=True)
class Range:
    """Values an input may have: from `low` to `high` (both included), or exactly `pattern`, repeated to fit its shape.

    `weak` marks a guess, which a range that is not weak replaces instead of narrowing it. `discrete` holds for inputs
    of integers only: others have any value.
    `words` are what an input of strings chooses from.
    """

    low: float
    high: float
    pattern: tuple[float, ...] = ()
    weak: bool = False
    discrete: bool = False
    words: tuple[str, ...] = ()

    @classmethod
    def exactly(cls, *pattern: float) -> Range:
        """Return the range of the one vector `pattern`."""
        return cls(min(pattern, default=0), max(pattern, default=0), tuple(pattern))

    def intersection(self, other: Range) -> Range:
        """Return the range that satisfies both; if there is none, this one, or the one that is not weak."""
        if self.weak != other.weak:
            return other if self.weak else self
        if self.pattern or other.pattern:
            return self if self.pattern else other
        if self.discrete != other.discrete and min(self.low, other.low) < 0:
            return self.intersection(replace(other, discrete=self.discrete))
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low > high:
            return self
        return replace(self, low=low, high=high, discrete=self.discrete and other.discrete)


BOOLEAN = Range(0, 1, weak=True)
POSITIVE = Range(0.25, 2.0)
