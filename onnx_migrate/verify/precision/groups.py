"""Which groups of an original's nodes can compute in the narrow type, tried in one session."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Evaluator, Runnable, open_model
from onnx_migrate.verify.evaluators.scopes import with_own_names
from onnx_migrate.verify.evaluators.switched import switched
from onnx_migrate.verify.model_traits import without_draws
from onnx_migrate.verify.precision.measured import Measured
from onnx_migrate.verify.precision.reference import Reference, reference_of
from onnx_migrate.verify.settings import Settings

__all__ = ["NARROWED", "narrowed"]

_GROUP_TRIES = 16
"""How often it is tried to let more groups compute in the narrow type."""


@dataclass(frozen=True)
class _Session:
    """An original whose groups are switched, and which of them were off together on some input, by more than so many times."""

    model: Evaluator
    switches: list[str]
    off: set[tuple[frozenset[int], float]] = field(default_factory=set)


NARROWED = "onnx_migrate.verify.precision.groups:narrowed"
"""What runs in the child process."""


def narrowed(
    original: Runnable,
    result: Runnable,
    kind: int,
    settings: Settings,
    draws: int,
    groups: Sequence[Sequence[tuple[BodyKey, str]]],
    most: float,
) -> list[frozenset[int]]:
    """Return the groups that can compute in the narrow type of `result`, by their places, in sets of which each is larger.

    Halves of all groups are tried, and halves of these where one is off by more than `most` times what is allowed. Values are
    rounded nearly as `result` does, on one feed: what is found has to be converted and compared. Returns nothing where the
    original does not run so.
    """
    original, result = map(with_own_names, without_draws(original, result))
    found: list[frozenset[int]] = []
    try:
        reference = reference_of(original, result, settings, draws)
        session = _session_of(reference, original, result, kind, groups)
    except EvaluationError:
        return found

    def agrees(narrow: frozenset[int]) -> bool:
        if (narrow, most) in session.off:
            return False
        kept = {switch: np.array(place not in narrow) for place, switch in enumerate(session.switches)}
        measured = Measured(reference, result, kind, settings, False, most)
        within = measured.compare(lambda inputs: session.model.run({**inputs, **kept}))
        if not within:
            session.off.add((narrow, most))
        return within

    places, tries = range(len(groups)), 0
    halves = deque([places[: len(places) // 2], places[len(places) // 2 :]])
    while halves and tries < _GROUP_TRIES:
        half = halves.popleft()
        if not half:
            continue
        tries += 1
        narrow = frozenset(half).union(*found[-1:])
        try:
            within = agrees(narrow)
        except EvaluationError:
            within = False
        if within:
            found.append(narrow)
        elif len(half) > 1:
            halves += [half[: len(half) // 2], half[len(half) // 2 :]]
    return found


def _session_of(
    reference: Reference,
    original: Runnable,
    result: Runnable,
    kind: int,
    groups: Sequence[Sequence[tuple[BodyKey, str]]],
) -> _Session:
    """Return an original whose groups are switched, the last one if it is that. Raises EvaluationError."""
    key = result.structure, kind, tuple(map(tuple, groups))
    if key not in reference.tried:
        reference.tried.clear()
        runnable, switches = switched(original, result, kind, groups)
        reference.tried[key] = _Session(open_model(runnable, UNOPTIMIZED), switches)
    found: _Session = reference.tried[key]
    return found
