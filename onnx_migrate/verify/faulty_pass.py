"""Finds the pass after which a model computes other numbers, and the first node that does: by bisection."""

from __future__ import annotations

import time
from collections.abc import Sequence

from onnx_migrate.errors import MigrateError
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import FirstDifference, Kind
from onnx_migrate.verify.prover import Prover

__all__ = ["first_difference"]

_PATIENCE = 120.0
"""Seconds after which no further model is compared; the passes that are left are all named then."""


def first_difference(
    prover: Prover, start: Model, stages: Sequence[tuple[str, Model]], *, claimed: bool
) -> FirstDifference | None:
    """Return which of `stages` is the first whose model does not compute what `start` does; None if there are none.

    `stages` are the names of passes that changed the model, in order, with the model after each; the last one differs.
    `claimed` says that bit-identity is required. A model that cannot be compared, as one that does not load between two
    passes, is passed over; then several passes may be to blame. `prover` is that of `start`.
    """
    if not stages:
        return None
    begin = time.perf_counter()
    good, bad = -1, len(stages) - 1
    untried = list(range(bad))
    while untried and time.perf_counter() - begin < _PATIENCE:
        place = untried[len(untried) // 2]
        same = _same(prover, stages[place][1], claimed=claimed)
        if same is None:
            untried.remove(place)
            continue
        good, bad = (place, bad) if same else (good, place)
        untried = [other for other in untried if good < other < bad]
    passes = tuple(name for name, _ in stages[good + 1 : bad + 1])
    before = start if good < 0 else stages[good][1]
    node, operator, value, problem = prover.first_value(before, stages[bad][1])
    return FirstDifference(passes, node, operator, value, problem)


def _same(prover: Prover, model: Model, *, claimed: bool) -> bool | None:
    """Return whether a model computes what the start does; None where that cannot be said."""
    try:
        verdict = prover.verify(model, model if claimed else None)
    except MigrateError:
        return None
    if verdict.load is not None or verdict.kind is Kind.UNVERIFIED:
        return None
    return verdict.verified
