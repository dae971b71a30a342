"""Where the frozen shapes leave several meanings, one is assumed, and another when a later node contradicts it."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, field

__all__ = ["Hypotheses"]


@dataclass
class Hypotheses:
    """The meanings assumed so far, in the order they were asked for.

    What was learnt at one place is tried first at the next of its pattern, so that the layers of a network cost
    one trial and not one each.
    """

    _remaining: dict[str, list[int]] = field(default_factory=dict)
    _patterns: dict[str, Hashable] = field(default_factory=dict)
    _preferred: dict[Hashable, int] = field(default_factory=dict)
    _order: list[str] = field(default_factory=list)

    def restart(self) -> None:
        """Begin a walk with what was learnt."""
        self._order.clear()

    def choose(self, label: str, pattern: Hashable, options: int) -> int:
        """Return which of the options, counted from 0, to assume at a place, named by a value."""
        self._order.append(label)
        if label not in self._remaining:
            first = self._preferred.get(pattern, 0)
            rest = [option for option in range(options) if option != first]
            self._remaining[label] = [first, *rest] if first < options else rest
            self._patterns[label] = pattern
        return self._remaining[label][0]

    def backtrack(self, upstream: Set[str]) -> bool:
        """Take the next meaning of the last place among `upstream` that has one left; tell whether there was one."""
        for index in range(len(self._order) - 1, -1, -1):
            label = self._order[index]
            if label in upstream and len(self._remaining[label]) > 1:
                self._remaining[label].pop(0)
                self._preferred[self._patterns[label]] = self._remaining[label][0]
                for later in self._order[index + 1 :]:
                    if later != label:
                        self._remaining.pop(later, None)
                return True
        return False
