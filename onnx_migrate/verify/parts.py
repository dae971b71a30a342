"""Proves in a child process that parts of a model, one after the other, compute the same bits as the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnx_migrate import process
from onnx_migrate.model.model import Model
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.equivalence.parts import PARTS, Chain
from onnx_migrate.verify.prover import Prover, differing, requires_unchanged
from onnx_migrate.verify.settings import Settings, interruption

__all__ = ["from_stand_in", "prove_parts"]


def prove_parts(
    prover: Prover,
    whole: Model,
    parts: Sequence[Model],
    settings: Settings,
    result: Model | None = None,
    fed: Mapping[str, Any] | None = None,
) -> Verdict:
    """Return whether parts of a model, in the order of computing, compute the same bits as the whole.

    With a `result` of the first part, the function also checks that the result with the parts behind it agrees up to rounding.
    `settings` have the inputs of the whole except for those that are `fed`. With `fed`, the result only shows which inputs are
    likely. Raises VerificationFailed if the numbers differ.
    """
    models = (whole, *parts, *([] if result is None else [result]))
    # A file that changes during the run would make the proof worthless.
    with requires_unchanged(*models):
        runnables = list(map(prover.runnable, models))
        last = None if result is None else runnables.pop()
        ending = settings.call(
            PARTS, Chain(runnables[0], tuple(runnables[1:]), last, fed or {}), settings.for_child
        )
    if isinstance(ending, process.Raised) and ending.error is not None:
        raise ending.error
    if not isinstance(ending, process.Returned):
        late = isinstance(ending, process.TimedOut)
        return Verdict(Kind.UNVERIFIED, interruption(ending), comparable=False, timed_out=late)
    verdict: Verdict = ending.value
    if verdict.kind is Kind.DIFFERS:
        raise differing(verdict)
    return verdict


def from_stand_in(verdict: Verdict, start: Verdict, against: str, stand_in: str, doubt: str) -> Verdict:
    """Return the verdict on a result that was compared with a stand-in for the original, with the verdict `start` on that.

    `against` names the stand-in, `stand_in` says so in the headline, and `doubt` is the reason if `start` left it open.
    """
    verdict = replace(
        verdict,
        notes=(*verdict.notes, *start.notes),
        compared_with=verdict.compared_with or against,
        stand_ins=(stand_in, *verdict.stand_ins),
    )
    if verdict.verified and not start.verified:
        return replace(verdict, kind=start.kind, reason=f"{doubt}: {start.reason}")
    return verdict
