"""Which eps a model computes with, and whether it quantises."""

from __future__ import annotations

from onnx_migrate.verify.compare.model_precision import coarsest_eps, is_quantized
from tests.verify.harness import ULP, net


def test_eps_is_that_of_the_coarsest_type_in_the_model():
    plain = "(float[4] x) => (float[4] y) { y = Relu(x) }"
    half = "(float[4] x) => (float[4] y) { h = Cast<to=10>(x) y = Cast<to=1>(h) }"
    inner = """(float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { h = Cast<to=16>(x) a = Cast<to=1>(h) },
        else_branch = e () => (float[4] b) { b = Identity(x) }> }"""
    assert coarsest_eps(net(plain)) == ULP
    assert coarsest_eps(net(half)) == 2.0**-10
    assert coarsest_eps(net(inner)) == 2.0**-7, "bfloat16 in a branch"
    assert coarsest_eps(net(plain.replace("float", "double"))) == 2.0**-52
    assert coarsest_eps(net("(int64[4] x) => (int64[4] y) { y = Abs(x) }")) == 0


def test_a_model_that_quantizes_is_recognised():
    text = "(float[4] x) => (uint8[4] y) <float s = {0.5}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
    assert is_quantized(net(text))
    assert not is_quantized(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))
