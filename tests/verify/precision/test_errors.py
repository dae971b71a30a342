"""The size of the numbers of a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate.verify.precision.errors import magnitudes

F4 = np.float32


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(np.array([3, -4, 0.5, 0], F4), (4.0, 0.5), id="zeros count for nothing"),
        pytest.param(
            np.array([[0, -0.0], [-1e-45, 2]], F4), (2.0, float(F4(1e-45))), id="the smallest of all"
        ),
        pytest.param(np.array([np.nan, -np.inf, 0, -2, 1], F4), (2.0, 1.0), id="what is not finite either"),
        pytest.param(np.array([1, 2, 0, 5], np.float16), (5.0, 1.0), id="float16"),
        pytest.param(np.arange(-6, 6, dtype=F4).reshape(3, 4).T, (6.0, 1.0), id="transposed"),
        pytest.param(np.array(-3, F4), (3.0, 3.0), id="a scalar"),
        pytest.param(np.zeros(3, F4), (0.0, 0.0), id="zeros alone"),
        pytest.param(np.array([np.nan], F4), (0.0, 0.0), id="nothing finite"),
        pytest.param(np.zeros((0, 2), F4), (0.0, 0.0), id="nothing"),
        pytest.param(None, (0.0, 0.0), id="an absent optional"),
    ],
)
def test_magnitudes(value: Any, expected: tuple[float, float]) -> None:
    with np.errstate(all="raise"):
        assert magnitudes(value) == expected
