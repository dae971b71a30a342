"""Sentences for the headline of a verdict about models and nodes that a comparison runs instead of the original's."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.evaluators.quirks import quirks
from onnx_migrate.verify.evaluators.scopes import OWN_NAMES_NOTE
from onnx_migrate.verify.model_traits import is_random, random_outputs

__all__ = ["stand_ins"]

_OWN_NAMES = "names of their own stood in for inner values that have the name of an outer one"


def stand_ins(original: onnx.ModelProto, verdict: Verdict) -> Iterator[str]:
    """Yield a sentence for each thing that was run instead of one of the original's nodes."""
    if is_random(original):
        operators = sorted(set(random_outputs(original).values()))
        if operators:
            yield f"fixed numbers stood in for random ones ({', '.join(operators)})"
    sentences = {OWN_NAMES_NOTE: _OWN_NAMES}
    for quirk in quirks():
        sentences |= quirk.stand_ins
    yield from (sentences[note] for note in verdict.notes if note in sentences)
