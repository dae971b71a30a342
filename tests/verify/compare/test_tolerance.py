"""How large a difference is allowed, and what of the model determines it."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.tolerance import Tolerance, allowance, coarsest_eps, is_quantized
from tests.verify.harness import ULP, net

F32 = np.dtype(np.float32)


def test_the_allowance_is_8_eps_of_the_scale_without_noise():
    assert allowance(Tolerance(), 2.0, 0.0, F32) == 8 * ULP * 2.0
    assert allowance(Tolerance(), 2.0, 0.0, np.dtype(np.float16)) == 8 * 2.0**-10 * 2.0


def test_noise_raises_it_tenfold_up_to_a_hundredth_of_the_scale():
    assert allowance(Tolerance(), 1.0, 1e-4, F32) == pytest.approx(1e-3)
    assert allowance(Tolerance(), 1.0, 0.5, F32) == 1e-2
    assert allowance(Tolerance(), 1.0, float("inf"), F32) == 1e-2


def test_eps_is_that_of_the_coarsest_type_in_the_model():
    assert allowance(Tolerance(eps=2.0**-10), 1.0, 0.0, F32) == 8 * 2.0**-10
    plain = "(float[4] x) => (float[4] y) { y = Relu(x) }"
    half = "(float[4] x) => (float[4] y) { h = Cast<to=10>(x) y = Cast<to=1>(h) }"
    inner = """(float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { h = Cast<to=16>(x) a = Cast<to=1>(h) },
        else_branch = e () => (float[4] b) { b = Identity(x) }> }"""
    assert coarsest_eps(net(plain)) == ULP
    assert coarsest_eps(net(half)) == 2.0**-10
    assert coarsest_eps(net(inner)) == 2.0**-7, "bfloat16 in a branch"
    assert coarsest_eps(net("(int64[4] x) => (int64[4] y) { y = Abs(x) }")) == 0


def test_a_model_that_quantizes_is_found():
    text = "(float[4] x) => (uint8[4] y) <float s = {0.5}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
    assert is_quantized(net(text))
    assert not is_quantized(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))
