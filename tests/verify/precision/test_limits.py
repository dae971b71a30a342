"""Limits are measured on the original alone, whichever nodes keep their type, and have a ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.precision.closeness import Closeness, closeness
from onnx_migrate.verify.precision.errors import CEILING, error_of
from tests.harness import model

F16 = TensorProto.FLOAT16
SETTINGS = Settings(isolated=False)


def compared(original: str, result: str, kind: int = F16) -> Closeness:
    one, other = (Runnable(structure=model(text).SerializeToString()) for text in (original, result))
    return closeness(one, other, kind, SETTINGS, strictly=True)


def cancelling(near: float) -> str:
    """Return a model whose rounded weight moves the output by more, the nearer two weights are."""
    return f"""17 (float[4,64] x) => (float[4,64] y) <float one = {{1.0}}, float near = {{{near}}}> {{
        a = Mul(x, one)  b = Mul(x, near)  y = Sub(a, b) }}"""


@pytest.mark.parametrize(
    ("near", "limit"), [(0.5, 5e-3), (0.9947, 0.05)]
)  # what rounding the weight 0.9947 moves is 1.9 % of y
def test_the_limit_is_that_of_the_original_whatever_the_result_is(near: float, limit: float) -> None:
    source = cancelling(near)
    narrow = source.replace("a = Mul(x, one)", "h = Cast<to = 10>(x)  f = Cast<to = 1>(h)  a = Mul(f, one)")
    for result in (source.replace("Sub(a, b)", "Mul(a, b)"), narrow.replace("Sub(a, b)", "Add(a, b)")):
        found = compared(source, result)
        assert found.outputs[0].error > 0.05
        assert not found.agrees
        assert found.outputs[0].limit <= limit
        floor = found.outputs[0].floor or 0.0
        assert found.outputs[0].limit == pytest.approx(min(max(5e-3, 2 * floor), CEILING[F16]))


def test_no_limit_is_above_the_ceiling() -> None:
    """The floor is some 30 %, as all of y is what rounding makes of the weight."""
    source = cancelling(0.9996)
    found = compared(source, source.replace("Sub(a, b)", "Add(a, b)"))

    assert (found.outputs[0].floor or 0) > 0.1
    assert found.outputs[0].limit == CEILING[F16] == 0.05


def test_an_output_without_numbers_proves_nothing() -> None:
    text = "17 (float[4,4] x) => (float[4,4] y) { a = Exp(x)  n = Neg(a)  y = Log(n) }"
    found = compared(text, text)

    assert "100% is NaN or infinite" in found.reason
    assert "--input-data" in found.reason


def test_nan_of_the_result_alone_is_never_within_a_limit() -> None:
    text = "17 (float[4,4] x) => (float[4,4] y) { a = Mul(x, x)  y = Sqrt(a) }"
    found = compared(text, text.replace("a = Mul(x, x)", "a = Identity(x)"))

    assert not found.agrees
    assert found.outputs[0].error == np.inf
    assert "NaN or infinite numbers that the original does not have" in str(found.outputs[0])


@pytest.mark.parametrize("way", ["fp32 where it overflows", "half"])
def test_infinity_on_inputs_ten_times_as_large_counts(way: str) -> None:
    text = "17 (float[4,64] x) => (float[4,64] y) <float s = {0.001}> { a = Exp(x)  y = Mul(a, s) }"
    narrow = """17 (float[4,64] x) => (float[4,64] y) <float s = {0.001}> {
        h = Cast<to = 10>(x)  e = Exp(h)  a = Cast<to = 1>(e)  y = Mul(a, s) }"""
    found = compared(text, text if way != "half" else narrow)

    assert found.agrees == (way != "half")


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        ([1.0, 2.0], [1.0, 2.002], 0.001),
        # A mask in an output does not hide the errors of others.
        ([1.0, 2.0, -3.4e38], [1.0, 2.2, -3.4e38], 0.1),
        ([1.0, 2.0, -3.4e38], [1.0, 2.0, -65504.0], 1.0),
        ([1.0, np.inf], [1.0, np.inf], 0.0),
        ([1.0, np.nan], [1.0, np.nan], 0.0),
        ([1.0, 2.0], [1.0, np.nan], np.inf),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, np.inf], [1.0, -np.inf], np.inf),
        ([-3.4e38, 1.0], [-np.inf, 1.0], np.inf),
        ([0.0, 0.0], [0.0, 0.25], 0.25),
    ],
)
def test_errors(before: list[float], after: list[float], error: float) -> None:
    assert error_of(np.array(before, np.float32), np.array(after, np.float32)) == pytest.approx(
        error, rel=1e-3
    )


def test_the_scale_of_an_error_may_be_larger_than_the_values() -> None:
    assert error_of(np.float32([0.01]), np.float32([0.02]), 1.0) == pytest.approx(0.01)


def test_two_values_of_one_name_are_told_apart() -> None:
    """ONNX Runtime reads the outer w in the branch, so that both would seem to compute the same."""
    text = """17 (float[4] x, bool c) => (float[4] y) <float[1] w = {3}> { t = Add(x, w)
        y = If (c) <then_branch = a () => (float[4] o) <float[1] w = {1000}> { o = Add(t, w) },
                    else_branch = b () => (float[4] o) { o = Mul(t, w) }> }"""
    found = compared(text, text.replace("1000", "1500"))

    assert found.outputs[0].error == pytest.approx(0.5, rel=0.1)
    assert found.outputs[0].limit == 5e-3


def test_a_model_that_decides_has_a_lower_ceiling() -> None:
    """Beside an ArgMax an error of 5 % may be a changed decision."""
    source = (
        cancelling(0.9947)
        .replace("float[4,64] y)", "float[4,64] y, int64[4,1] k)")
        .replace("y = Sub(a, b)", "y = Sub(a, b)  k = ArgMax <axis = 1>(x)")
    )
    found = compared(source, source.replace("y = Sub(a, b)", "y = Add(a, b)"))

    y = next(output for output in found.outputs if output.name == "y")
    assert (y.floor or 0) > 0.01
    assert y.limit == pytest.approx(0.02)


@pytest.mark.parametrize(("size", "agrees"), [(3e-6, True), (2e-4, False)])
def test_numbers_below_the_smallest_normal_one_are_compared_with_that(size: float, agrees: bool) -> None:
    """The weight is 2 % larger; in float16 a number of 3e-6 is a multiple of 6e-8."""
    source = f"17 (float[4,4] x) => (float[4,4] y) <float k = {{{size}}}> {{ t = Tanh(x)  y = Mul(t, k) }}"
    found = compared(source, source.replace(f"{{{size}}}", f"{{{size * 1.02}}}"))

    assert found.agrees == agrees


@pytest.mark.parametrize(("share", "is_compared"), [(0.25, False), (0.75, True)])
def test_less_than_half_of_an_output_proves_nothing(share: float, is_compared: bool) -> None:
    """The other elements are infinite in both, as those of a mask."""
    shown = ", ".join("1" if place < 16 * share else "0" for place in range(16))
    text = f"""17 (float[4,16] x) => (float[4,16] y) <bool[16] k = {{{shown}}}, float one = {{1}}, float zero = {{0}}> {{
        i = Div(one, zero)  y = Where(k, x, i) }}"""
    found = compared(text, text)

    assert found.agrees
    assert (found.reason == "") == is_compared
