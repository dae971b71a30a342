"""What the original computes in ONNX Runtime, and on which inputs: what other runtimes are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.compare.tolerance import coarsest_eps, is_quantized
from onnx_migrate.verify.equivalence.reference_run import run_original
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, without_static_shapes
from onnx_migrate.verify.inputs.user_inputs import Feeds

__all__ = ["REFERENCE_VALUES", "Reference", "reference_values"]

REFERENCE_VALUES = "onnx_migrate.verify.elsewhere.reference:reference_values"
"""What runs in the child process."""


@dataclass(frozen=True)
class Reference:
    """Feeds that the original runs on, its outputs on each, how far rounding moves them, and the coarsest eps in it."""

    names: tuple[str, ...]
    feeds: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...]
    noise: Noise
    eps: float
    quantized: bool


def reference_values(original: Runnable, result: Runnable, feeds: Feeds | None, seed: int) -> Reference | str:
    """Run the original without optimisation; return what it computes, or why it does not run.

    Raises UsageError for `feeds` that do not fit it.
    """
    before, after = original.proto(), result.proto()
    try:
        try:
            run = run_original(original, before, after, feeds, seed)
        except EvaluationError as error:
            if not error.loading or error.limit:
                raise
            run = run_original(without_static_shapes(original), before, after, feeds, seed)
    except EvaluationError as error:
        return f"the original does not {error.failed_to} in ONNX Runtime, so that there is nothing to compare with: {error}"
    names = [output.name for output in before.graph.output]
    first = run.runs[run.first]
    return Reference(
        tuple(feed.name for feed in run.feeds[: len(first)]),
        tuple(run.inputs(run.first)),
        tuple({name: values[name] for name in names} for values in first),
        run.noise,
        coarsest_eps(before),
        is_quantized(before),
    )
