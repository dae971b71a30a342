"""Outputs that hide small differences, and the values that show them."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.compare.masking import bounded_outputs, masked_outputs
from tests.verify.harness import net


@pytest.mark.parametrize(
    ("body", "shows"),
    [
        ("a = Relu(x) y = Sigmoid(a)", {"y": "a"}),
        ("a = Relu(x) b = Softmax(a) c = ArgMax(b) y = Cast<to=1>(c)", {"y": "a"}),
        ("a = Relu(x) y = Identity(a)", {}),
        ("y = Sigmoid(x)", {}),
        ("a = Sigmoid(x) y = Relu(a)", {}),
    ],
    ids=["bounded", "discrete behind a cast", "transparent only", "of an input", "not last"],
)
def test_the_value_before_the_operators_that_mask_is_returned(body, shows):
    assert masked_outputs(net(f"(float[2,4] x) => (float[2,4] y) {{ {body} }}")) == shows


def test_outputs_of_bounded_operators_are_found():
    text = "(float[4] x) => (float[4] y, float[4] z, float[4] t) { y = Tanh(x) z = Relu(x) t = Neg(y) }"
    assert bounded_outputs(net(text)) == {"y"}
