"""The hypotheses of the search: which interpretation of the frozen shapes is assumed at each node that leaves several."""

from __future__ import annotations

from collections.abc import Hashable, Set
from dataclasses import dataclass, field

import onnx

from onnx_migrate.model.graphs import names_read, producers

__all__ = ["Hypotheses", "upstream_labels"]


@dataclass
class Hypotheses:
    """The choices made so far, in the order they were made; each is an index into the options of one choice point.

    A choice point has a label: the name of a value that its node produces. Choice points of one pattern (same operator,
    same shapes) are likely to need the same option. So an option that backtracking reached is tried first at the next
    choice point of the pattern. All layers of a network then cost one more attempt together, not one each.
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
            # Another choice point of the pattern may have had more options.
            self._remaining[label] = [first, *rest] if first < options else rest
            self._patterns[label] = pattern
        return self._remaining[label][0]

    def backtrack(self, upstream: Set[str]) -> bool:
        """Refute the current option of the last choice point in `upstream` that has another, and forget later choices.

        `upstream` are the labels that the node in conflict depends on. Backtracking skips other choices, since they
        cannot cause the conflict (conflict-directed backjumping). Returns False if no choice point there has an option left.
        """
        for index in range(len(self._order) - 1, -1, -1):
            label = self._order[index]
            if label in upstream and len(self._remaining[label]) > 1:
                self._remaining[label].pop(0)
                self._preferred[self._patterns[label]] = self._remaining[label][0]
                for later in self._order[index + 1 :]:
                    # The node of a function asks once for each call, always with the same label.
                    if later != label:
                        self._remaining.pop(later, None)
                return True
        return False


def upstream_labels(proto: onnx.ModelProto, label: str, *, nested: bool) -> Set[str]:
    """Return the labels of the choice points that the node with `label` may depend on.

    These are the labels of its ancestors in the main graph. A `nested` node, which is in a sub-graph, may depend on all
    labels. The same holds in a model with functions.
    """
    if nested or proto.functions:
        return _AllLabels()
    producer_of = producers(proto.graph)
    seen: set[str] = set()
    queue = [label]
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in producer_of:
            queue.extend(names_read(producer_of[name]))
    return _Labels(seen)


class _Labels(set[str]):
    """Names of values, and the labels "NAME[INDEX]" of choice points that belong to them."""

    def __contains__(self, label: object) -> bool:
        return super().__contains__(str(label).partition("[")[0]) or super().__contains__(label)


class _AllLabels(set[str]):
    """Contains every label."""

    def __contains__(self, label: object) -> bool:
        return True
