"""Runs models without onnx-migrate and says whether two results differ: the judge that is independent of `verify`.

ONNX Runtime runs both models without optimisations. If it has no kernel for the original, onnx.reference runs both.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime

__all__ = ["LIMITS", "Run", "Unloadable", "difference", "run", "runner"]

LIMITS = {"float16": 5e-3, "float32": 1e-4, "float64": 1e-4}
"""Largest difference of equal outputs, as a share of the output's largest finite magnitude."""

_ZERO = 1e-6
"""The largest number that a result may have if all numbers of the original's output are 0."""

Run = Callable[[Mapping[str, Any]], list[Any]]


class Unloadable(Exception):
    """A runtime does not load a model; the text is its own."""


def _session(model: onnx.ModelProto, optimised: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimised else levels.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        raise Unloadable(str(error)) from error


def runner(model: onnx.ModelProto, *, reference: bool = False, optimised: bool = False) -> Run:
    """Return a function that runs a model on a feed. Raises Unloadable."""
    if not reference:
        session = _session(model, optimised)
        names = {one.name for one in session.get_inputs()}
        return lambda feed: list(session.run(None, {k: v for k, v in feed.items() if k in names}))
    from onnx.reference import ReferenceEvaluator

    try:
        evaluator = ReferenceEvaluator(model)
    except Exception as error:
        raise Unloadable(str(error)) from error
    return lambda feed: list(evaluator.run(None, dict(feed)))


def run(model: Run, feed: Mapping[str, Any]) -> list[Any] | None:
    """Return the outputs on a feed; None if the model does not run on it."""
    try:
        with np.errstate(all="ignore"):
            return model(feed)
    except Exception:  # the runtime says in many ways that an input does not fit
        return None


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """Return how the outputs of two models differ, "" if they are equal within `LIMITS`."""
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        text = _differs(one, other)
        if text:
            return f"output {index}: {text}"
    return ""


def _differs(one: Any, other: Any) -> str:
    if one is None or other is None:
        return "" if one is None and other is None else "one is empty"
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{len(one)} entries became {len(other)}"
        return next((text for pair in zip(one, other, strict=True) if (text := _differs(*pair))), "")
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return "other keys"
        return next((text for key in one if (text := _differs(one[key], other[key]))), "")
    return _arrays(np.asarray(one), np.asarray(other))


def _arrays(one: Any, other: Any) -> str:
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return f"{one.dtype}{list(one.shape)} became {other.dtype}{list(other.shape)}"
    if one.dtype.kind not in "fc":
        count = int(np.sum(one != other))
        return f"{count} of {one.size} elements differ" if count else ""
    limit = LIMITS.get(str(one.dtype), 1e-4)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        one, other = _wide(one), _wide(other)
        if not np.array_equal(np.isnan(one), np.isnan(other)):
            return "NaN at other positions"
        infinite = np.isinf(one) | np.isinf(other)
        if not np.array_equal(one[infinite], other[infinite]):
            return "infinities at other positions"
        finite = np.isfinite(one) & np.isfinite(other)
        scale = float(np.abs(one[finite]).max(initial=0.0))
        worst = float(np.abs(one[finite] - other[finite]).max(initial=0.0))
        # An output of zeros has no scale.
        if worst > (limit * scale or _ZERO):
            return f"differs by {worst / scale if scale else worst:.2g} of the largest magnitude"
    return ""


def _wide(values: Any) -> Any:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
