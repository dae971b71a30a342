"""Measures how a runtime's rounding differs from ONNX Runtime's: `python -m tests.verify.other_runtimes.measure RUNTIME …`.

Runs the fixtures, and the node tests of one release of onnx, in ONNX Runtime and in the runtime. A model counts whose
outputs all agree within a hundredth; of it, the largest difference beyond ten times the noise that ONNX Runtime shows when
its inputs move by one unit in the last place, in units of the eps of float32 times the largest magnitude of the output.
Prints these figures for the models that are furthest off; FLOORS in onnx_migrate/verify/other_runtimes/proof.py follow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from onnx_migrate.process import Limits
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.foreign import ForeignProcess
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp
from onnx_migrate.verify.other_runtimes.places import RuntimeRequest, place_of
from onnx_migrate.verify.other_runtimes.proof import in_form_of
from tests.campaigns.conformance.cases import cases
from tests.support.paths import FIXTURES

__all__ = ["measure"]

_RELEASE = "1.13.1"
_EPS = 2.0**-23


def models(folder: Path) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Yield the name, the file and the inputs of each model."""
    for path in sorted(FIXTURES.glob("*_opset*.onnx")):
        given = {value.name for value in onnx.load(path).graph.input}
        with np.load(str(path).replace(".onnx", ".io.npz")) as file:
            yield path.stem, path, {key: file[key] for key in file.files if key in given}
    for case in cases((_RELEASE,)):
        proto, runs = case.load()
        feed = runs[0][0] if runs else {}
        plain = all(isinstance(value, np.ndarray) and value.dtype.kind in "fiub" for value in feed.values())
        if case.kind == "node" and runs and plain:
            path = folder / "case.onnx"
            onnx.save(proto, path)
            yield case.name, path, feed


def measure(asked: RuntimeRequest, folder: Path) -> list[tuple[float, str]]:
    """Return the figure of each model that the runtime computes as ONNX Runtime does, the largest first."""
    found = []
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    process = ForeignProcess(asked.place, Limits(60.0))
    for name, path, feed in models(folder):
        try:
            session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            outputs = [value.name for value in session.get_outputs()]
            expected = dict(zip(outputs, session.run(None, feed), strict=True))
            moved = dict(zip(outputs, session.run(None, perturbed_by_ulp(feed, 0)), strict=True))
        except Exception:  # noqa: S112 (what ONNX Runtime does not run is no measure)
            continue
        try:
            process.load(path, feed, outputs)
            values, _ = in_form_of(process.run(feed), expected, loses_axes=True)
        except EvaluationError as error:
            if "crashed" in str(error) or "not done" in str(error):
                process.__exit__()
                process = ForeignProcess(asked.place, Limits(60.0))
            continue
        figures = [_figure(expected[key], moved[key], values[key]) for key in outputs]
        if all(figure is not None for figure in figures):
            found.append((max((figure for figure in figures if figure is not None), default=0.0), name))
    process.__exit__()
    return sorted(found, reverse=True)


def _figure(expected: Any, moved: Any, value: Any) -> float | None:
    """Return how far an output is off, None where it is not the same at all."""
    if not isinstance(expected, np.ndarray) or not value.shape == expected.shape == moved.shape:
        return None
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(expected, value) else None
    if expected.dtype != np.float32 or not np.all(np.isfinite(expected)) or not np.all(np.isfinite(value)):
        return 0.0
    scale = float(np.max(np.abs(expected), initial=0.0))
    off = float(np.max(np.abs(expected.astype(float) - value), initial=0.0))
    noise = float(np.max(np.abs(expected.astype(float) - moved), initial=0.0))
    if off > 1e-2 * scale:
        return None
    return max(0.0, off - 10 * noise) / (scale * _EPS) if scale else 0.0


if __name__ == "__main__":
    import tempfile

    for text in sys.argv[1:]:
        asked_for = place_of(text)
        with tempfile.TemporaryDirectory() as work:
            figures = measure(asked_for, Path(work))
        print(f"{asked_for.runtime}: {len(figures)} models agree")
        for figure, name in figures[:12]:
            print(f"  {figure:10.1f}  {name}")
