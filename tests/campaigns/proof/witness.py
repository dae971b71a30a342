"""Searches a valid input on which two models differ; without one they count as equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from tests.campaigns.proof.feeds import feeds
from tests.campaigns.proof.judge import Run, Unloadable, difference, run, runner

__all__ = ["Witness", "search"]

_RANDOM_RUNS = 40
"""Runs over which the distribution of random outputs is measured."""

_MOVED = 0.15
"""Share of an output's standard deviation, or mean magnitude, by which a distribution must move to count as another."""


@dataclass(frozen=True)
class Witness:
    """A feed on which the models differ, the corner that it reaches, and how they differ."""

    feed: dict[str, Any]
    corner: str
    difference: str
    runtime: str
    feeds_without: int
    """Valid feeds before this one on which the models agree."""

    @property
    def ordinary(self) -> bool:
        """Whether the first feed of ordinary numbers shows the difference."""
        return self.feeds_without == 0 and self.corner in ("recorded", "normal", "random")


def search(original: onnx.ModelProto, other: onnx.ModelProto, base: Mapping[str, Any]) -> Witness | str:
    """Return the first witness; a text that says why the pair does not count, if there is none."""
    try:
        runs, runtime = _runners(original, other)
    except Unloadable:
        return "a model does not load"
    first = run(runs[0], base)
    if first is None:
        return "the original does not run on the recorded feed"
    agreeing = 0
    if difference(first, runs[0](base)):
        text = _distribution(runs, base)
        return Witness(dict(base), "random", text, runtime, 0) if text else "equal: the same distribution"
    for corner, feed in feeds(original, dict(base), other):
        ours = run(runs[0], feed)
        if ours is None or not _informative(ours):
            continue
        theirs = run(runs[1], feed)
        if theirs is None:
            return Witness(feed, corner, "the second model does not run", runtime, agreeing)
        text = difference(ours, theirs)
        if text and not difference(ours, runs[0](feed)):
            return Witness(feed, corner, text, runtime, agreeing)
        agreeing += 1
    return f"equal on {agreeing} feeds"


def _runners(original: onnx.ModelProto, other: onnx.ModelProto) -> tuple[tuple[Run, Run], str]:
    try:
        ours, runtime = runner(original), "onnxruntime, not optimised"
    except Unloadable:
        ours, runtime = runner(original, reference=True), "onnx.reference"
    return (ours, runner(other, reference=runtime == "onnx.reference")), runtime


def _informative(outputs: list[Any]) -> bool:
    """Return whether an output has a number that is not NaN."""
    arrays = [one for one in outputs if isinstance(one, np.ndarray) and one.dtype.kind == "f"]
    return not arrays or len(arrays) < len(outputs) or any(np.isfinite(one).any() for one in arrays)


def _distribution(runs: tuple[Run, Run], feed: Mapping[str, Any]) -> str:
    """Return how the distributions of two random models differ: by mean, deviation, least or largest value."""
    figures = []
    for model in runs:
        values = np.stack(
            [np.concatenate([np.ravel(one) for one in model(feed)]) for _ in range(_RANDOM_RUNS)]
        )
        values = values.astype(np.float64)
        figures.append((float(values.mean()), float(np.std(values)), float((values == 0).mean())))
    scale = max(figures[0][1], 1e-30)
    for name, ours, theirs in zip(("mean", "deviation", "share of zeros"), *figures, strict=True):
        if abs(ours - theirs) > _MOVED * (1.0 if name.startswith("share") else scale):
            return f"{name} {ours:.3g} became {theirs:.3g}"
    return ""
