"""Inputs that a model refuses to run on, corrected by what the runtime says: sizes and values are tried in turn."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import onnx

from onnx_migrate.verify.compare.arrays import flatten
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.candidates import candidates
from onnx_migrate.verify.inputs.generate import Corrections, generate_feed
from onnx_migrate.verify.inputs.sizes import SizeChoice

__all__ = ["corrected"]

_TRIES = 96
_PATIENCE = 8.0
"""Seconds after which no further correction is tried."""

_PER_REFUSAL = 32
"""Corrections of one refusal that are tried where one of them led to another refusal."""

_NUMBER = re.compile(r"\d+")


def corrected(
    model: onnx.ModelProto,
    other: onnx.ModelProto | None,
    choice: SizeChoice,
    seed: int,
    run: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    refusal: EvaluationError,
) -> Corrections | None:
    """Return corrections with which the model runs, None if none were found; `refusal` is that of the inputs as made.

    A correction that leads to another refusal is kept, once for each, if none leads to a run. Corrections with which
    every output is empty are the last resort. At most 96 runs, within eight seconds.
    """
    start = time.perf_counter()
    known, seen, tries = Corrections(), {_kind(refusal)}, 0
    empty: Corrections | None = None
    while True:
        further: tuple[Corrections, EvaluationError] | None = None
        for place, candidate in enumerate(candidates(model, other, choice, known, refusal)):
            if further is not None and place >= _PER_REFUSAL:
                break
            if tries == _TRIES or time.perf_counter() - start > _PATIENCE:
                return empty
            tries += 1
            feed = generate_feed(model, other, choice, "normal", seed, candidate)
            if feed is None:
                continue
            try:
                outputs = run(feed)
            except EvaluationError as error:
                if error.limit:
                    return empty
                if further is None and _kind(error) not in seen:
                    further = candidate, error
            else:
                if not _all_empty(outputs):
                    return candidate
                empty = empty or candidate
        if further is None:
            return empty
        known, refusal = further
        seen.add(_kind(refusal))


def _all_empty(outputs: Mapping[str, Any]) -> bool:
    return all(array is not None and array.size == 0 for _, array in flatten("", list(outputs.values())))


def _kind(refusal: EvaluationError) -> str:
    """Return what distinguishes a refusal from others: node and message without numbers."""
    return refusal.node + _NUMBER.sub("", str(refusal))
