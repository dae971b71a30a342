"""Lets nodes that only move numbers compute in the type that needs fewest Casts.

Before                                  After
a = Cast<to = 10>(Slice(x, ...))        y = Cast<to = 10>(x)
b = Cast<to = 10>(Slice(x, ...))        a = Slice(y, ...)
                                        b = Slice(y, ...)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from onnx_migrate.facts.typed_graph import Step, Value
from onnx_migrate.standard.retyping import Retyping

from .merging import casts_of
from .plan import Plan, moves

__all__ = ["settle_movers"]

_ROUNDS = 8
"""How often all movers are tried; each round saves a Cast or is the last one."""

_MOST = 64
"""How many movers change their type together."""

_REASON = "that saves Casts"


def settle_movers(steps: Iterable[Step], plan: Plan, changes: Mapping[Step, Retyping]) -> None:
    """Change the type of movers, alone and with those that read the same value, as long as that saves Casts.

    `changes` has the retyping of the movers that the plan keeps for their neighbours alone. A plan in which movers alone compute
    in the new type stays unchanged.
    """
    if all(map(moves, plan.changes)):
        return
    movers = [step for step in steps if step in changes and moves(step) and not step.inner]
    groups = [group for step in movers for group in _groups(step, {*movers})]
    for _ in range(_ROUNDS):
        if not [group for group in groups if _is_flipped(group, plan, changes)]:
            break


def _groups(step: Step, movers: set[Step]) -> Iterator[tuple[Step, ...]]:
    """Yield a mover alone, with the other movers that read its input, with all behind it, and with all before it."""
    yield (step,)
    for value in step.read:
        siblings = tuple(dict.fromkeys(reader for reader, _ in value.readers if reader in movers))
        # Each of the siblings comes here, and only the first yields their group.
        if len(siblings) > 1 and siblings[0] is step:
            yield siblings
    for direction in (_readers, _makers):
        group = _reached(step, direction, movers)
        if len(group) > 1:
            yield group


def _reached(step: Step, direction: Callable[[Step], Iterable[Step]], movers: set[Step]) -> tuple[Step, ...]:
    """Return a mover with the movers behind it, or before it."""
    reached, pending = {step: None}, [step]
    while pending and len(reached) < _MOST:
        new = [other for other in direction(pending.pop()) if other in movers and other not in reached]
        reached |= dict.fromkeys(new)
        pending += new
    return tuple(reached)


def _readers(step: Step) -> Iterator[Step]:
    return (reader for value in step.made for reader, _ in value.readers)


def _makers(step: Step) -> Iterator[Step]:
    return (value.maker for value in step.read if value.maker is not None)


def _is_flipped(group: tuple[Step, ...], plan: Plan, changes: Mapping[Step, Retyping]) -> bool:
    """Give a group the other type if that saves Casts, and return whether it does; all of its nodes have one type."""
    are_kept = {step in plan.kept for step in group}
    if len(are_kept) > 1:
        return False
    values = dict.fromkeys(value for step in group for value in (*step.read, *step.made))
    before, reasons = _count(values, plan), {step: plan.kept.get(step, _REASON) for step in group}
    _flip(group, plan, changes, reasons, keeping=not are_kept.pop())
    if _count(values, plan) < before:
        return True
    _flip(group, plan, changes, reasons, keeping=group[0] in plan.changes)
    return False


def _flip(
    group: Iterable[Step],
    plan: Plan,
    changes: Mapping[Step, Retyping],
    reasons: Mapping[Step, str],
    *,
    keeping: bool,
) -> None:
    for step in group:
        if keeping:
            plan.keep(step, reasons[step])
        else:
            del plan.kept[step]
            plan.changes[step] = changes[step]


def _count(values: Iterable[Value], plan: Plan) -> int:
    return sum(casts_of(value, plan) for value in values)
