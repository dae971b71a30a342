"""Inputs that decide on a shape or a text are not moved by rounding."""

from __future__ import annotations

import pytest

from onnx_migrate.verify import Kind
from onnx_migrate.verify.inputs.constraints.exact_inputs import exact_inputs
from tests.verify.harness import check, net

CASES = [
    ("(float[1,1,4,4] x, float[4] s) => (float[a,b,c,d] y) { y = Resize<mode = \"nearest\">(x, , s) }", {"s"}),
    ("(float[3] x) => (string[3] y) { i = Identity(x) y = Cast<to = 8>(i) }", {"x"}),
    ("(float[3] x, string s) => (string[3] y) { y = CastLike(x, s) }", {"x"}),
    ("(float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }", {"a", "b", "c"}),
    ("(float[3] x) => (float[3] y) { y = Relu(x) }", set()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names"), CASES)
def test_they_are_found_and_the_model_is_verified(text, names):
    assert exact_inputs(net(text)) == names
    check(text, text, Kind.VERIFIED)
