"""The lengths that constant scales were computed from."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

intent = importlib.import_module("onnx_migrate.passes.resize.intent.exporter_intent")


@pytest.mark.parametrize(
    ("scale", "length", "expected"),
    [
        (31 / 7, 7, [1, 31]),  # runs as 30
        (25 / 13, 13, None),  # runs as 25
        (1.7999, 5, None),  # rounded to a few decimals: runs as 8, and the intended length is ambiguous
        (1.5, 5, None),  # 7, as PyTorch computes too
        (2.0, 5, None),
    ],
)
def test_intended_lengths(scale: float, length: int, expected: list[int] | None) -> None:
    scales = np.array([1, scale], np.float32)

    assert intent.intended_lengths(scales, (1, length)) == expected
    assert intent.intended_lengths(scales, (None, length)) == (
        None if expected is None else [None, *expected[1:]]
    )
    assert intent.intended_lengths(scales, (1, None)) is None
