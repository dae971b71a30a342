"""The nodes of an original at which the result leaves it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from onnx_migrate.facts.typed_graph import Step, Value
from onnx_migrate.verify.evaluators import STRICT, EvaluationError, Runnable, open_model
from onnx_migrate.verify.precision.errors import as_masked, error_of, fed, in_float, wide
from onnx_migrate.verify.precision.reference import FEWEST, Reference, bytes_of, recorded

__all__ = ["causes_of", "inner_errors", "originals"]

_EPSILON = 2.0**-11
"""Rounding of one node; smaller errors are not compared."""

_AMPLIFIES = 4.0
"""A node causes an error if it makes the error of its inputs so many times as large."""

_MOST = 2000
"""How many inner values are recorded in one run at most."""

_BYTES = 1 << 28
"""Bytes that the values of a later run may take, and those that are kept of the original's."""


def causes_of(reference: Reference, result: Runnable, feed: int, limit: float, way: str) -> tuple[str, ...]:
    """Return the outputs of the nodes of the original's main graph at which errors become too large.

    `way` is the configuration in which the result runs.
    """
    errors: dict[str, float] = {}
    for (errors,) in inner_errors(reference, result, feed, (way,)):
        if any(error > limit for error in errors.values()):
            break
    # An output of integers can be wrong while all inner floats are within the limit, so the limit falls.
    while limit > _EPSILON / 4:
        for step in reference.graph.steps:
            if _error(step.made, errors) > limit:
                return _chain(step, errors, limit)
        limit /= 2
    return ()


def inner_errors(
    reference: Reference, result: Runnable, feed: int, ways: Sequence[str]
) -> Iterator[list[dict[str, float]]]:
    """Yield the errors of more and more inner values, in their order, on the feed at a place, for each configuration."""
    errors: list[dict[str, float]] = [{} for _ in ways]
    inputs = fed(reference.feeds[feed].inputs, result.model)
    for some, values in originals(reference, feed, recorded(reference, result)):
        try:
            others = [in_float(open_model(result, way, some).run(inputs)) for way in ways]
        # The other values may still run, and a cause among them is better than none.
        except (EvaluationError, MemoryError):
            continue
        for name in some:
            for largest_errors, other in zip(errors, others, strict=True):
                largest_errors[name] = error_of(as_masked(wide(values[name]), other[name]), other[name])
        yield errors


def originals(
    reference: Reference, feed: int, names: Sequence[str]
) -> Iterator[tuple[Sequence[str], Mapping[str, Any]]]:
    """Yield inner values of the original on the feed at a place.

    First come the values kept from an earlier call, then a few others, then as many at once as should not take too much memory.
    """
    values = reference.inner_on(feed)
    start, held = 0, bytes_of(values)
    if recorded_names := [name for name in names if name in values]:
        yield recorded_names, values
        reference.at_once = max(reference.at_once, _at_once(len(values), held))
    names = [name for name in names if name not in values]
    # The caller has read the values that were yielded above.
    if held > _BYTES:
        values.clear()
    while start < len(names):
        some = names[start : start + reference.at_once]
        start += len(some)
        try:
            run = open_model(reference.runnable, STRICT, some).run(reference.feeds[feed].inputs)
        except (EvaluationError, MemoryError):
            continue
        yield some, run
        size = bytes_of(run)
        if held + size <= _BYTES:
            values.update((name, run[name]) for name in some)
            held += size
        reference.at_once = _at_once(len(some), size)


def _at_once(count: int, size: int) -> int:
    """Return how many values fit into memory, as far as the size of some values shows."""
    return min(max(_BYTES * count // max(size, 1), FEWEST), _MOST)


def _error(values: Iterable[Value], errors: Mapping[str, float]) -> float:
    return max((errors.get(value.name, 0.0) for value in values), default=0.0)


def _chain(last: Step, errors: Mapping[str, float], limit: float) -> tuple[str, ...]:
    """Return the node at which an error is too large, and the nodes before it, back to the start of the error."""
    chain = [last]
    while True:
        computed_inputs = [value for value in chain[-1].read if value.maker is not None]
        largest = max(computed_inputs, key=lambda value: errors.get(value.name, 0.0), default=None)
        error = errors.get(largest.name, 0.0) if largest is not None else 0.0
        if largest is None or largest.maker is None or error <= max(limit / 8, _EPSILON):
            break
        chain.append(largest.maker)
    # Without a floor, a node whose inputs have no error at all would always have the largest gain.
    gains = [_error(step.made, errors) / max(_error(step.read, errors), _EPSILON) for step in chain]
    worst = max(gains)
    causes = [step for step, gain in zip(chain, gains, strict=True) if gain > _AMPLIFIES or gain == worst]
    return tuple(value.name for step in (last, *causes) for value in step.outputs[:1] if value is not None)
