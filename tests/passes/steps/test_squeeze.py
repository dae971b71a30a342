"""Squeeze and Unsqueeze below 13: axes as constants and at run time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, lower


def text(operator: str, shape: str, axes: list[int] | None) -> str:
    given = "" if axes is None else f"<int64[{len(axes)}] axes = {{{', '.join(map(str, axes))}}}>"
    return f"""<ir_version: 8, opset_import: ["": 13]> graph (float[{shape}] x) => (float[] y) {given}
        {{ y = {operator} (x{"" if axes is None else ", axes"}) }}"""


@pytest.mark.parametrize("axes", [None, [], [0], [2], [-1], [0, -2]], ids=str)
def test_squeeze(axes: list[int] | None) -> None:
    shape = "1, 3, 1" if axes and -1 in axes else "1, 3, 1, 4"
    check_down(text("Squeeze", shape, axes), 12, 11, 9, 7, refused=None)


@pytest.mark.parametrize("axes", [[0], [2], [-1], [0, -1], [1, 3], []], ids=str)
def test_unsqueeze(axes: list[int]) -> None:
    check_down(text("Unsqueeze", "2, 3", axes), 12, 11)
    check_down(text("Unsqueeze", "2, 3", axes), 9, 7, variants=("plain", "symbolic"))


def run_time(
    operator: str, axes: list[int], shape: list[int], dtype: str = "float"
) -> tuple[str, dict[str, np.ndarray]]:
    source = f"""<ir_version: 8, opset_import: ["": 13]> graph ({dtype}{shape} x, int64[{len(axes)}] axes)
        => ({dtype}[] y) {{ y = {operator} (x, axes) }}"""
    kind = np.float32 if dtype == "float" else np.int64
    return source, {"x": np.arange(np.prod(shape)).reshape(shape).astype(kind), "axes": np.array(axes)}


@pytest.mark.parametrize("axes", [[0], [-1], [0, 2], [2, 0], [-1, -4]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_squeeze_at_run_time(axes: list[int], dtype: str) -> None:
    shape = [1, 3, 1] if axes == [-1] else [1, 3, 1, 4] if 2 in axes else [1, 3, 4, 1]
    source, feeds = run_time("Squeeze", axes, shape, dtype)
    check_down(source, 12, 11, feeds=feeds)


@pytest.mark.parametrize("axes", [[0], [-1], [1], [0, 2], [2, 0], [-1, -4]], ids=str)
@pytest.mark.parametrize("shape", [[2, 3], [4], []], ids=str)
def test_unsqueeze_at_run_time(axes: list[int], shape: list[int]) -> None:
    rank = len(shape) + len(axes)
    if not all(-rank <= axis < rank for axis in axes):
        return
    source, feeds = run_time("Unsqueeze", axes, shape)
    check_down(source, 12, 11, feeds=feeds)


def test_a_known_shape_is_exact_at_run_time() -> None:
    source, _ = run_time("Squeeze", [0], [1, 3])
    assert [change.exactness.value for change in lower(source, 12)[1].changes] == ["exact"]
    source = source.replace("float[1, 3]", "float[1, N]")
    assert [change.exactness.value for change in lower(source, 12)[1].changes] == ["assumed"]
