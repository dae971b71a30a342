"""Runs fixtures and small models in a foreign runtime, and tells how far they are off ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import onnx

from onnx_migrate.process import Limits
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import UNOPTIMIZED, open_model
from onnx_migrate.verify.evaluators.foreign import Foreign, ForeignProcess, NotInstalled, Place
from tests.support.paths import FIXTURES
from tests.support.skips import Elsewhere, skip
from tests.verify.harness import Net, runnable

__all__ = ["fixture", "need", "off", "opened"]


def need(name: str) -> None:
    """Skip the test where a runtime is not installed, with its reason."""
    reason = _missing(name)
    if reason:
        skip(f"{name} is not installed: {reason}", Elsewhere.INSTALLED)


@cache
def _missing(name: str) -> str:
    try:
        with ForeignProcess(Place.here(name), Limits(60.0)):
            return ""
    except NotInstalled as reason:
        return str(reason)


@contextmanager
def opened(name: str, model: Net | Runnable, **tensors: Any) -> Iterator[Foreign]:
    """Open a model in a runtime, or skip the test where that is not installed."""
    need(name)
    with Foreign(runnable(model, **tensors), Place.here(name), Limits(120.0)) as evaluator:
        yield evaluator


def fixture(name: str) -> tuple[Runnable, dict[str, Any]]:
    """Return a fixture and what it is fed."""
    path = FIXTURES / f"{name}.onnx"
    given = {value.name for value in onnx.load(path).graph.input}
    with np.load(FIXTURES / f"{name}.io.npz") as file:
        return Runnable(path), {key: file[key] for key in file.files if key in given}


def off(name: str, model: Net | Runnable, feed: Mapping[str, Any], **tensors: Any) -> float:
    """Return the largest difference from ONNX Runtime, as a share of the output's largest magnitude.

    Shapes must be those of ONNX Runtime, unless both have fewer than two axes.
    """
    given = runnable(model, **tensors)
    expected = open_model(given, UNOPTIMIZED).run(feed)
    with opened(name, given) as evaluator:
        found = evaluator.run(feed)
    assert list(found) == list(expected)
    largest = 0.0
    for key, value in expected.items():
        wide, other = value.astype(np.float64), found[key].astype(np.float64)
        assert other.shape == wide.shape or (wide.ndim < 2 and other.size == wide.size), key
        scale = float(np.max(np.abs(wide), initial=0.0)) or 1.0
        largest = max(largest, float(np.max(np.abs(wide - other.reshape(wide.shape)), initial=0.0)) / scale)
    return largest
