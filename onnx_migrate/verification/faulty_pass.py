"""Finds the pass after which the numbers of a migrated model first differ."""

from __future__ import annotations

from collections.abc import Collection

from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.engine.validity import settle_ir_version
from onnx_migrate.errors import MigrateError, VerificationFailed
from onnx_migrate.model.model import Model, Segment
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify.prover import Prover, first_difference

__all__ = ["name_faulty_pass"]


def name_faulty_pass(
    error: VerificationFailed,
    pipeline: Pipeline,
    prover: Prover,
    original: Model,
    segment: Segment[Model],
    ended_by: Collection[str],
) -> None:
    """Add to the error after which pass of a segment the numbers first differ, if they do.

    The passes of `pipeline` are run once more for it. `ended_by` are passes that may have ended the segment.
    """
    # Other errors do not say that numbers differ.
    if error.code != VerificationFailed.default_code or error.verification is None:
        return
    try:
        stages = pipeline.intermediate_models(original)
    except MigrateError:
        return
    if segment.original is not original and segment.original.as_given is None:
        start = segment.original.proto
        # The passes before this segment are not to blame.
        start_indices = [index for index, (_, model) in enumerate(stages) if model.proto == start]
        stages = stages[start_indices[-1] + 1 :] if start_indices else []
    names = [name for name, _ in stages]
    end = next((index for index, name in enumerate(names) if name in ended_by), len(names))
    stages = stages[:end]
    for _, model in stages:
        settle_ir_version(model, original, ChangeLog())
    claimed = error.verification.exact is False and not error.verification.own_rounding
    difference = first_difference(prover, segment.original, stages, claimed=claimed)
    if difference is not None:
        error.first_difference = difference
        error.reason = f"{difference}: {error.reason}"
