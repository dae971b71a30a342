"""Whether two values have the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.bits import bit_difference, tells_zeros_apart
from tests.verify.harness import net

X = np.linspace(-1, 1, 101, dtype=np.float32)


def test_a_bit_difference_is_described_with_its_size():
    assert bit_difference("y", X, X.copy()) == ""
    after = X.copy()
    after[3] = np.nextafter(after[3], np.float32(2))
    assert (
        bit_difference("y", X, after)
        == "'y' differs in 1 of 101 elements, by up to 5.96e-08 (5.96e-06 % of the largest value)"
    )
    assert "shape" in bit_difference("y", X, X[None])
    assert "'y[1]'" in bit_difference("y", [X, X], [X, after])
    assert "another number of elements" in bit_difference("y", [X, X], [X])


def test_the_sign_of_a_zero_counts_only_if_it_is_asked_for():
    zeros = np.array([0.0, 2.0])
    assert "'y' differs in 1 of 2" in bit_difference("y", zeros, zeros * [-1, 1])
    assert bit_difference("y", zeros, zeros * [-1, 1], zeros=False) == ""
    assert bit_difference("y", zeros, zeros * [-1, 1.5], zeros=False)


@pytest.mark.parametrize(
    ("node", "expected"),
    [("Relu(x)", False), ("Reciprocal(x)", True), ("Div(x, x)", True), ("com.microsoft.Gelu(x)", True)],
)
def test_a_later_node_may_tell_zeros_apart(node, expected):
    assert tells_zeros_apart(net(f"(float[4] x) => (float[4] y) {{ y = {node} }}")) is expected
