"""The sampler of grids: its sampling of rows, of one image and of several."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx_migrate.passes.steps.image_sampling import Axis, Sampler

from onnx_migrate.engine.steps.formula import Op, Value
from tests.support.written import Written

AT = np.array([-1.5, -1.0, -0.25, 0.0, 0.5, 1.75, 2.0, 2.5, 3.0], np.float32)
LINE = np.array([1.0, 3.0, 7.0], np.float32)


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        ("zeros", [0, 0, 0.75, 1, 2, 6, 7, 3.5, 0]),
        ("border", [1, 1, 1, 1, 2, 6, 7, 7, 7]),
        ("reflection", [2, 1, 1, 1, 2, 6, 7, 7, 7]),
    ],
)
def test_linear_along_one_axis(monkeypatch: pytest.MonkeyPatch, padding: str, expected: list[float]) -> None:
    def build(op: Op, x: Value) -> Value:
        rows = op.constant(LINE[:, None])
        sampler = Sampler(op, TensorProto.FLOAT, rows, rank=2, padding=padding, by_corner=False)
        sampler.axes.append(Axis(x.reshape(-1, 1), op.constant(sampler.number(2)), None))
        return sampler.linear()

    found = Written(monkeypatch).run(build, AT, 12, 11, static=True)
    np.testing.assert_allclose(found.reshape(-1), expected)
