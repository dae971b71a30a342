"""The hypotheses of the search: which interpretation of the frozen shapes is assumed at each node that leaves several."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, field

__all__ = ["Hypotheses"]


@dataclass
class Hypotheses:
    """The choices made so far, in the order they were made; each is an index into the options of one choice point.

    A choice point is named by a label, the name of a value that its node produces. Choice points of one pattern (same
    operator, same shapes) are likely to need the same option: one that backtracking reached is tried first at the
    next, so that the layers of a network cost one more attempt in all and not one each.
    """

    _remaining: dict[str, list[int]] = field(default_factory=dict)
    """The options of each choice point that are not refuted, the current one first."""
    _patterns: dict[str, Hashable] = field(default_factory=dict)
    _preferred: dict[Hashable, int] = field(default_factory=dict)
    """The option to try first at a new choice point of a pattern."""
    _order: list[str] = field(default_factory=list)

    def restart(self) -> None:
        """Begin a new attempt with the choices made so far."""
        self._order.clear()

    def choose(self, label: str, pattern: Hashable, options: int) -> int:
        """Return the option, from 0 to `options` - 1, that is assumed at a choice point."""
        self._order.append(label)
        if label not in self._remaining:
            first = self._preferred.get(pattern, 0)
            rest = [option for option in range(options) if option != first]
            self._remaining[label] = [first, *rest] if first < options else rest
            self._patterns[label] = pattern
        return self._remaining[label][0]

    def backtrack(self, upstream: Set[str]) -> bool:
        """Refute the current option of the last choice point in `upstream` that has another, and forget later choices.

        `upstream` are the labels that the node in conflict depends on, so choices that cannot be its cause are not
        undone first (conflict-directed backjumping). Returns False if no choice point there has an option left.
        """
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
