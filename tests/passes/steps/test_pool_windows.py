"""The windows of a pool: how many there are, where they lie and which padding they need without ceil_mode."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_migrate.passes.steps.pool_windows import Windows

from tests.harness import run
from tests.lowering import model
from tests.passes.steps.test_pooling import text


def one_axis(
    length: int, kernel: int, stride: int, dilation: int, head: int, tail: int, size: int
) -> Windows:
    return Windows([length], [kernel], [stride], [dilation], [head], [tail], [size])


def test_padding_for_the_last_window() -> None:
    assert one_axis(6, 3, 2, 1, 0, 0, 3).pads_for_floor() == [0, 1]
    assert one_axis(7, 3, 2, 1, 0, 0, 3).pads_for_floor() == [0, 0]
    assert one_axis(6, 2, 3, 2, 1, 0, 3).pads_for_floor() == [1, 2]


def test_places_and_counts() -> None:
    given = one_axis(5, 2, 2, 2, 1, 1, 3)
    np.testing.assert_array_equal(given.places(0), [[0, 2], [2, 4], [4, 6]])
    np.testing.assert_array_equal(given.counts(include=False), [1, 2, 1])
    np.testing.assert_array_equal(given.counts(include=True), [2, 2, 2])


@pytest.mark.parametrize("length", [4, 5, 6, 7])
def test_a_window_is_left_out_as_the_runtime_leaves_it_out(length: int) -> None:
    """One that would start in the padding at the end; rounding up alone counts it."""
    source = model(text("MaxPool", 12, "kernel_shape = [1], strides = [3], ceil_mode = 1", f"1, 1, {length}"))
    (result,) = run(source, {"x": np.zeros((1, 1, length), np.float32)})
    assert one_axis(length, 1, 3, 1, 0, 0, result.shape[2]).counts_too_many == (length in (5, 6))
