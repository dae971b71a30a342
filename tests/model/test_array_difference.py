"""Two constants differ beyond rounding, and the sentence says where."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.model.array_difference import array_difference


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (np.eye(2), np.eye(2), ""),
        (np.eye(2), np.eye(2) * (1 + 1e-7), ""),
        (np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3).T, ""),
        (np.array([1.0, 2.0]), np.array([1.0, 3.0]), "w differs in 1 of 2 elements, at [1]: 2 and 3"),
        (np.array(1.0), np.array(3.0), "w is 1, and 3 in the second model"),
        (np.zeros(2), np.zeros(3), "w has shape [2], and [3] in the second model"),
    ],
)  # fmt: skip
def test_two_constants_differ_beyond_rounding(one: np.ndarray, other: np.ndarray, text: str) -> None:
    assert array_difference("w", one, other) == text
