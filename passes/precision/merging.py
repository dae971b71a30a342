"""Keeps the type of nodes between nodes that keep theirs, if that needs fewer Casts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from onnx_migrate.facts.typed_graph import Step, Value

from .plan import Plan, stays

__all__ = ["casts_of", "merge_islands"]

_MOST = 4
"""How many nodes are kept at once to save a Cast."""

_READERS = 32
"""A value with more readers than this does not count: one Cast serves all its readers, so one reader more saves nothing."""

_STORED = 4096
"""Numbers of a constant up to which a node that reads it is kept: more would make the file larger."""

_SLOW = frozenset({"Attention", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm", "LSTM", "MatMul", "RNN"})
"""Operators that take most of the time; users choose a narrow type to make them faster."""


def merge_islands(steps: Iterable[Step], plan: Plan) -> None:
    """Keep cheap nodes of the main graph beside kept nodes, a few at once, if that saves a Cast.

    If then no node would compute in the new type, except nodes that simplification folds, the plan stays unchanged.
    """
    changes, kept_nodes = dict(plan.changes), dict(plan.kept)
    for island in kept_nodes:
        for step in list(_beside(island, plan)):
            if step in plan.changes:
                _keep_if_better(step, plan)
    folded = _folded(steps)
    narrow = {step for step in steps if any(value.dtype == plan.target for value in step.made)}
    if not {*plan.changes, *narrow} - folded:
        plan.changes, plan.kept = changes, kept_nodes


def _folded(steps: Iterable[Step]) -> set[Step]:
    """Return which of these nodes, in their order, compute with nothing but constants."""
    folded: set[Step] = set()
    for step in steps:
        if not step.inner and all(value.tensor is not None or value.maker in folded for value in step.read):
            folded.add(step)
    return folded


def _keep_if_better(step: Step, plan: Plan) -> None:
    changes = {step: plan.changes[step]}
    more = 0
    while True:
        around = [*step.read, *step.made]
        before = sum(casts_of(value, plan) for value in around)
        plan.keep(step, "that saves Casts")
        more += sum(casts_of(value, plan) for value in around) - before
        if more < 0:
            return
        following = next(_beside(step, plan), None)
        # A chain of nodes may save a Cast only after its last node is kept.
        if more > 0 or following is None or len(changes) == _MOST:
            break
        step, changes[following] = following, plan.changes[following]
    for step in changes:
        del plan.kept[step]
    plan.changes.update(changes)


def _beside(step: Step, plan: Plan) -> Iterator[Step]:
    """Yield nodes that make an input or read an output of a node, and that may keep their type."""
    makers = (value.maker for value in step.read)
    readers = (reader for value in step.made if len(value.readers) <= _READERS for reader, _ in value.readers)
    for other in (*makers, *readers):
        if (
            other is not None
            and not other.frame.key
            and other in plan.changes
            and not (other.inner or other.domain or other.is_a(*_SLOW))
            and all(value.tensor is None or prod(value.tensor.dims) <= _STORED for value in other.read)
        ):
            yield other


def casts_of(value: Value, plan: Plan) -> int:
    """Return how many Casts of a value the plan needs."""
    if value.tensor is not None or not plan.changes_type(value) or len(value.readers) > _READERS:
        return 0
    wanted = {plan.wanted(reader, index) for reader, index in value.readers} - {None}
    if value.is_output:
        wanted.add(value.dtype)
    return len(wanted - {value.dtype if value.maker is None or stays(value, plan) else plan.target})
