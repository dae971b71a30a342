"""Finds few nodes that show a failure: those that the message names, or one needed node after the other by bisection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import Parts
from onnx_migrate.reduction.trials import Trials

__all__ = ["few_nodes", "without_single_nodes"]

_NAMED = 3
"""Most nodes that are tried because the message names them or their operator."""


def few_nodes(candidate: Candidate, trials: Trials, text: str) -> Candidate:
    """Return a model of as few nodes of a candidate as show the failure, whose message is `text`. Raises TimeOver."""
    parts = Parts(candidate)
    if len(parts.steps) <= 1:
        return candidate
    steps = _behind_named(parts, trials, text) or _behind_last(parts, trials)
    smaller = parts.part(steps)
    return smaller if smaller is not None and len(steps) < len(parts.steps) else candidate


def without_single_nodes(candidate: Candidate, trials: Trials) -> Candidate:
    """Return a model that needs each of its nodes for the failure; the candidate itself if it does. Raises TimeOver."""
    parts = Parts(candidate)
    steps = _minimal(parts, parts.steps, trials)
    smaller = parts.part(steps) if len(steps) < len(parts.steps) else None
    return smaller or candidate


def _behind_named(parts: Parts, trials: Trials, text: str) -> list[int]:
    """Return the nodes that are needed for the failure at a node that the message names; [] if none of these shows it."""
    for index in islice(_named(parts, text), _NAMED):
        others = [each for each in parts.ancestors(parts.steps, [index]) if each != index]
        if trials.accepts(parts.part([index])):
            return [index]
        if others and trials.accepts(parts.part([*others, index])):
            return _with_needed(parts, [index], others, trials)
    return []


def _named(parts: Parts, text: str) -> Iterator[int]:
    """Yield the nodes that a message names, by the name of the node, of an output, or by a rare operator."""
    words = {*re.findall(r"[^\s'\"`,;()\[\]{}<>=]+", text), *re.findall(r"'([^']+)'|\"([^\"]+)\"", text)}
    plain = {
        part.rstrip(".:") for word in words for part in ((word,) if isinstance(word, str) else word) if part
    }
    by_name = [
        index
        for index in parts.steps
        if plain.intersection(filter(None, (parts.nodes[index].name, *parts.nodes[index].output)))
    ]
    counts = Counter(parts.nodes[index].op_type for index in parts.steps)
    operators = {word for part in plain for word in re.findall(r"\w+", part)} & counts.keys()
    rare = sorted(operators, key=lambda name: counts[name])
    by_operator = [
        next(index for index in parts.steps if parts.nodes[index].op_type == name) for name in rare
    ]
    yield from dict.fromkeys([*by_name[:_NAMED], *by_operator])


def _behind_last(parts: Parts, trials: Trials) -> list[int]:
    """Return the needed nodes: the last one is found by bisection."""
    end = _bisected(0, len(parts.steps), lambda number: parts.part(parts.steps[:number]), trials)
    last, others = parts.steps[end - 1], parts.steps[: end - 1]
    if not others or trials.accepts(parts.part([last])):
        return [last]
    return _with_needed(parts, [last], others, trials)


def _with_needed(parts: Parts, needed: list[int], others: list[int], trials: Trials) -> list[int]:
    """Return nodes with those of the others that the failure needs too, found one after the other, the nearest first.

    A set of nodes that shows the failure is expected to show it with more nodes too. Then the failure needs each node of the
    result.
    """
    while others:
        others = _nearest_first(parts, needed, others)
        number = _galloped(len(others), lambda number: parts.part([*needed, *others[:number]]), trials)  # noqa: B023
        needed, others = [*needed, others[number - 1]], others[: number - 1]
        if trials.accepts(parts.part(needed)):
            break
    return sorted(needed)


def _nearest_first(parts: Parts, needed: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return nodes by their distance from the needed ones, against the direction of the values."""
    distance = dict.fromkeys(needed, 0)
    waiting = list(needed)
    for place in waiting:
        for name in parts.reads[place]:
            maker = parts.makers.get(name, -1)
            if maker not in distance:
                distance[maker] = distance[place] + 1
                waiting.append(maker)
    return sorted(others, key=lambda place: (distance.get(place, len(parts.nodes)), -place))


def _galloped(most: int, part: Callable[[int], Candidate | None], trials: Trials) -> int:
    """Return the least number of nodes whose part shows the failure: with 1, 2, 4 … nodes, and then by bisection."""
    low, high = 0, 1
    while high < most:
        sizes = [min(most, high << exponent) for exponent in range(trials.jobs)]
        shown = trials.fail([part(size) for size in sizes])
        low = max((size for size, fails in zip(sizes, shown, strict=True) if not fails), default=low)
        if any(shown):
            high = next(size for size, fails in zip(sizes, shown, strict=True) if fails)
            return _bisected(min(low, high - 1), high, part, trials)
        high = sizes[-1] * 2
    return _bisected(low, most, part, trials)


def _bisected(low: int, high: int, part: Callable[[int], Candidate | None], trials: Trials) -> int:
    """Return the least number of nodes above `low` whose part shows the failure; that of `high` nodes does."""
    while high - low > 1:
        # All jobs check one pivot each at the same time, so the pivots divide the range evenly.
        step = (high - low) / (trials.jobs + 1)
        pivots = sorted({max(low + 1, round(low + step * index)) for index in range(1, trials.jobs + 1)})
        shown = trials.fail([part(pivot) for pivot in pivots])
        high = next((pivot for pivot, fails in zip(pivots, shown, strict=True) if fails), high)
        below = (pivot for pivot, fails in zip(pivots, shown, strict=True) if not fails and pivot < high)
        low = max(below, default=low)
    return high


def _minimal(parts: Parts, steps: Sequence[int], trials: Trials) -> list[int]:
    """Return a subset that needs each of its nodes for the failure."""
    remaining = list(steps)
    while len(remaining) > 1:
        rests = [remaining[:index] + remaining[index + 1 :] for index in reversed(range(len(remaining)))]
        accepted = trials.first(parts.part(rest) for rest in rests)
        if accepted is None:
            break
        remaining = rests[accepted[0]]
    return remaining
