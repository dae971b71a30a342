"""Finds few nodes that show a failure: nodes that the message names, bisection along the order, then delta debugging."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import Parts
from onnx_migrate.reduction.trials import Trials

__all__ = ["few_nodes"]

_NAMED = 3
"""Most nodes that are tried because the message names them or their operator."""


def few_nodes(candidate: Candidate, trials: Trials, text: str) -> Candidate:
    """Return a model of as few nodes of a candidate as show the failure, whose message is `text`. Raises TimeOver."""
    parts = Parts(candidate)
    if len(parts.steps) <= 1:
        return candidate
    steps = _named_steps(parts, trials, text) or _between(parts, trials)
    steps = _minimal(parts, steps, trials)
    found = parts.part(steps)
    return found if found is not None and len(steps) < len(parts.steps) else candidate


def _named_steps(parts: Parts, trials: Trials, text: str) -> list[int]:
    """Return a node that shows the failure alone, among those that the message names; [] if none does."""
    tried = list(_named(parts, text))[:_NAMED]
    found = trials.first(parts.part([place]) for place in tried)
    return [tried[found[0]]] if found is not None else []


def _named(parts: Parts, text: str) -> Iterator[int]:
    """Yield the nodes that a message names, by the name of the node, of an output, or by a rare operator."""
    words = {*re.findall(r"[^\s'\"`,;()\[\]{}<>=]+", text), *re.findall(r"'([^']+)'|\"([^\"]+)\"", text)}
    plain = {
        part.rstrip(".:") for word in words for part in ((word,) if isinstance(word, str) else word) if part
    }
    by_name = [
        place
        for place in parts.steps
        if plain.intersection(filter(None, (parts.nodes[place].name, *parts.nodes[place].output)))
    ]
    counts = Counter(parts.nodes[place].op_type for place in parts.steps)
    operators = {word for part in plain for word in re.findall(r"\w+", part)} & counts.keys()
    rare = sorted(operators, key=lambda name: counts[name])
    by_operator = [
        next(place for place in parts.steps if parts.nodes[place].op_type == name) for name in rare
    ]
    yield from dict.fromkeys([*by_name[:_NAMED], *by_operator])


def _between(parts: Parts, trials: Trials) -> list[int]:
    """Return the nodes between the latest start and the earliest end at which the failure shows."""
    steps = parts.steps
    steps = steps[: _bisected(len(steps), lambda number: parts.part(steps[:number]), trials)]
    steps = _ancestors(parts, steps, trials)
    left = _bisected(len(steps), lambda number: parts.part(steps[len(steps) - number :]), trials)
    return _ancestors(parts, steps[len(steps) - left :], trials)


def _ancestors(parts: Parts, steps: Sequence[int], trials: Trials) -> list[int]:
    """Return the nodes that the last one is computed from, if these show the failure; otherwise all."""
    needed = parts.ancestors(steps, [steps[-1]])
    if len(needed) < len(steps) and trials.accepts(parts.part(needed)):
        return needed
    return list(steps)


def _bisected(most: int, part: Callable[[int], Candidate | None], trials: Trials) -> int:
    """Return the least number of nodes whose part shows the failure, if parts with more nodes show it too."""
    low, high = 0, most
    while high - low > 1:
        pivots = sorted(
            {low + (high - low) * (place + 1) // (trials.jobs + 1) for place in range(trials.jobs)} - {low}
        )
        shown = trials.fail([part(pivot) for pivot in pivots])
        high = next((pivot for pivot, fails in zip(pivots, shown, strict=True) if fails), high)
        low = max(
            (pivot for pivot, fails in zip(pivots, shown, strict=True) if not fails and pivot < high),
            default=low,
        )
    return high


def _minimal(parts: Parts, steps: Sequence[int], trials: Trials) -> list[int]:
    """Return a subset from which no single node can be left out: delta debugging, with smaller and smaller groups."""
    kept = list(steps)
    size = max(1, len(kept) // 2)
    while len(kept) > 1:
        starts = list(range(len(kept) - size, -size, -size))
        rests = [kept[: max(0, start)] + kept[start + size :] for start in starts]
        rests = [rest for rest in rests if rest]
        found = trials.first(parts.part(rest) for rest in rests)
        if found is not None:
            kept = rests[found[0]]
            size = min(size, max(1, len(kept) // 2))
        elif size == 1:
            break
        else:
            size = max(1, size // 2)
    return kept
