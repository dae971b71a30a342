"""Which groups of an original's nodes can compute in the narrow type, tried in one session."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.evaluators.switched import switched
from onnx_migrate.verify.model_traits import without_draws
from onnx_migrate.verify.precision.closeness import Measured
from onnx_migrate.verify.precision.reference import reference_of
from onnx_migrate.verify.settings import Settings

__all__ = ["NARROWED", "narrowed"]

_GROUP_TRIES = 16
"""How often it is tried to let more groups compute in the narrow type."""

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
    rounded nearly as `result` does, on a few inputs: what is found has to be converted and compared. Returns nothing where the
    original does not run so.
    """
    original, result = without_draws(original, result)
    found: list[frozenset[int]] = []
    try:
        reference = reference_of(original, result, settings, draws)
        runnable, switches = switched(original, result, kind, groups)
        model = open_model(runnable, UNOPTIMIZED)
    except EvaluationError:
        return found

    def agrees(narrow: frozenset[int]) -> bool:
        kept = {switch: np.array(place not in narrow) for place, switch in enumerate(switches)}
        measured = Measured(reference, result, kind, settings, False, most)
        return measured.compare(lambda inputs: model.run({**inputs, **kept}))

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
