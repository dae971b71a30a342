"""Exports of PyTorch's interpolate at opsets 9 to 20 stay exact; with resize_intent they compute what PyTorch does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest

from tests.harness import ONNX_NEWEST, ORT_NEWEST, run
from tests.resize.shaped import apply_resize_passes
from tests.support.paths import FIXTURES
from tests.support.skips import Elsewhere, skip_if

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Export:
    """One exported call: the model, its input, and PyTorch's own output."""

    name: str
    opset: int
    model: onnx.ModelProto
    x: Array
    y: Array


def exports(step: int) -> Iterator[tuple[Export, int]]:
    """Yield every `step`-th model of fixtures/interpolate.npz, with a target to lift it to."""
    with np.load(FIXTURES / "interpolate.npz") as file:
        arrays = dict(file)
    ends = np.cumsum(arrays["lengths"]).tolist()
    for index, (name, end) in enumerate(zip(arrays["names"].tolist(), ends, strict=True)):
        call, _, stamp = name.rsplit(".", 2)
        opset, y = int(stamp), arrays[f"{call}.y"]
        targets = [to for to in (11, 13, 18, 19, 21, 26) if opset <= to <= min(ORT_NEWEST, ONNX_NEWEST)]
        if index % step or not targets:
            continue
        model = onnx.ModelProto.FromString(arrays["models"][end - arrays["lengths"][index] : end].tobytes())
        yield Export(name, opset, model, arrays[f"x{y.ndim}"], y), targets[index % len(targets)]


def run_source(export: Export) -> Array | None:
    """Run the file as it is; None for an Upsample that shrinks, which ONNX Runtime refuses, loaded or run."""
    try:
        result: Array = run(export.model, {"x": export.x})[0]
    except Exception as error:
        if "Scale value should be greater than or equal to 1" not in str(error):
            raise
        return None
    return result


def check_exports(step: int) -> tuple[int, int, int]:
    """Return how many exports were checked, how many files compute what PyTorch does, and how many do not run."""
    count = right = refused = 0
    for export, to in exports(step):
        label = f"{export.name} to {to}"
        count += 1
        before = run_source(export)
        if before is not None:
            plain, _ = apply_resize_passes(export.model, to)
            np.testing.assert_array_equal(run(plain, {"x": export.x})[0], before, err_msg=label)
            right += before.shape == export.y.shape and np.allclose(before, export.y, rtol=1e-4, atol=2e-5)
        else:
            refused += 1
        result, _ = apply_resize_passes(export.model, to, intent=True)
        np.testing.assert_allclose(
            run(result, {"x": export.x})[0], export.y, rtol=1e-4, atol=2e-5, err_msg=label
        )
    return count, right, refused


def test_sample() -> None:
    count, right, _ = check_exports(16)
    assert right < count, "up to opset 10 the files are not what PyTorch computes"


@pytest.mark.campaign
@skip_if(ORT_NEWEST < 26, "the counts are of all targets", Elsewhere.NEWEST)
def test_all() -> None:
    assert check_exports(1) == (2524, 2364, 36)
