"""The losses below opset 12, against their function bodies and onnx.reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import model, random_feeds
from tests.steps import check_down


def check(source: str, *targets: int, **more: Any) -> None:
    feeds = random_feeds(model(source))
    rng = np.random.default_rng(3)
    feeds["t"] = rng.integers(0, 3, feeds["t"].shape).astype(feeds["t"].dtype)
    if "ignore_index" in source:
        feeds["t"].flat[::3] = -1 if "= -1" in source else 2
    check_down(source, *targets, feeds=feeds, **more)


@pytest.mark.parametrize("operator", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [True, False])
@pytest.mark.parametrize("ignored", [None, 2, -1])
def test_losses(operator: str, reduction: str, weight: bool, ignored: int | None) -> None:
    attributes = f'reduction = "{reduction}"' + (f", ignore_index = {ignored}" if ignored is not None else "")
    for x, t in (("[4,3]", "[4]"), ("[2,3,2,2]", "[2,2,2]")):
        loss = t if reduction == "none" else ""
        source = f"""12 (float{x} x, int64{t} t{", float[3] w" if weight else ""})
            => (float{loss} y) {{ y = {operator}<{attributes}> (x, t{", w" if weight else ""}) }}"""
        check(source, 11)
        check(source, 10, 9, variants=("plain", "symbolic"))


def test_log_probabilities() -> None:
    source = """12 (double[2,3,4] x, int32[2,4] t)
        => (double y, double[2,3,4] logs) { y, logs = SoftmaxCrossEntropyLoss (x, t) }"""
    check(source, 11, rtol=1e-12, atol=1e-12)


def test_newest_version() -> None:
    source = "22 (float16[4,3] x, int64[4] t) => (float16 y) { y = NegativeLogLikelihoodLoss (x, t) }"
    check(source, 21, 12, 11, rtol=2e-3, atol=2e-3)
