"""Scales that are harmless whatever the shape; all else is tested in tests/passes/resize/test_resize_form.py."""

from __future__ import annotations

import importlib

import numpy as np

forms = importlib.import_module("onnx_migrate.passes.resize.scales_and_sizes")
lengths = importlib.import_module("onnx_migrate.passes.resize.runtime_types")


def test_scales_of_few_bits_never_disagree() -> None:
    scales = [1, 2, 3, 4, 8, 15, 0.5, 0.25, 0.125, 1.5, 2.5, 0.75, 0.625, 1.75, 96]

    assert lengths.never_disagrees(np.array(scales, np.float32))
    for scale in scales:
        for length in (*range(1, 200), 4095, 65_537, 999_999):
            assert not lengths.disagree(length, scale), (length, scale)


def test_other_scales_may() -> None:
    for scale in (1.8, 1.3, 25 / 13, 0.1):
        assert not lengths.never_disagrees(np.array([1, scale], np.float32))
