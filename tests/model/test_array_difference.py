"""Two constants differ beyond rounding, and the sentence says where."""

from __future__ import annotations

from typing import Any

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
        ([1.0, 2.0, 3.0], [1.5, 2.0, 5.0], "w differs in 2 of 3 elements, first at [0]: 1 and 1.5; most at [2]: 3 and 5"),
        ([1.0, 2.0, 3.0], [9.0, 2.0, 5.0], "w differs in 2 of 3 elements, first and most at [0]: 1 and 9"),
        ([1.0, 2.0], [2.0, np.nan], "w differs in 2 of 2 elements, first at [0]: 1 and 2; most at [1]: 2 and nan"),
        (np.array(1.0), np.array(3.0), "w is 1, and 3 in the second model"),
        (np.zeros(2), np.zeros(3), "w has shape [2], and [3] in the second model"),
    ],
)  # fmt: skip
def test_two_constants_differ_beyond_rounding(one: Any, other: Any, text: str) -> None:
    assert array_difference("w", np.asarray(one), np.asarray(other)) == text
