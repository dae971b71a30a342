"""Models of float64 in float32."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnx_migrate.errors import CannotMigrate
from tests.passes.precision.test_precision import SEARCH, check, converted, types
from tests.steps import operators

DOUBLE = TensorProto.DOUBLE

BODIES = {
    "products": "(double[2,3] x) => (double[2,2] y) <double[3,2] w = {1, 2, 3, 4, 5, 0.1}> { a = MatMul(x, w) y = Tanh(a) }",
    "constants": """(double[2,3] x) => (double[2,3] y) {
        h = Constant<value = double {0.5}>() s = Shape(x) c = ConstantOfShape<value = double[1] {0.1}>(s)
        a = Mul(x, h) y = Add(a, c) }""",
    "generators": """(double[3,3] x) => (double[3,3] y) <double z = {0}, double e = {3}, double t = {1}> {
        i = EyeLike<dtype = 11>(x) r = Range(z, e, t) a = Add(i, r) y = Mul(x, a) }""",
    "casts": """(float[2,3] x) => (float[2,3] y) <double[3] w = {1.1, 2, 3}> {
        a = Cast<to = 11>(x) b = Mul(a, w) c = Exp(b) d = Log(c) y = Cast<to = 1>(d) }""",
    "branches": """(double[2,3] x, bool c) => (double[2,3] y) <double two = {2}> {
        y = If(c) <then_branch = t () => (double[2,3] a) { a = Mul(x, two) },
            else_branch = e () => (double[2,3] b) { b = Neg(x) }> }""",
    "turns": """(double[2,3] x) => (double[2,3] y) <int64 n = {3}, bool t = {1}, double h = {0.5}> {
        y = Loop(n, t, x) <body = b (int64 i, bool c, double[2,3] v) => (bool d, double[2,3] w) {
            d = Identity(c) w = Mul(v, h) }> }""",
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_nothing_but_the_interface_stays_float64(name: str) -> None:
    source = f"17 {BODIES[name]}"
    result = check(source, "fp32", share=1e-6, settings=SEARCH)
    ports = {value.name for value in (*result.graph.input, *result.graph.output)}
    assert DOUBLE not in {kind for value, kind in types(result).items() if value not in ports}
    assert DOUBLE not in {tensor.data_type for tensor in result.graph.initializer}

    result, _ = converted(source, "fp32", interface=True)
    assert DOUBLE not in types(result).values()


def test_what_float32_cannot_hold_stays_float64() -> None:
    source = """17 (float[2] x) => (float[2] y) <double[2] w = {1e300, 2}> {
        a = Cast<to = 11>(x) b = Mul(a, w) c = Div(b, w) y = Cast<to = 1>(c) }"""
    result = check(source, "fp32", share=0.0, settings=SEARCH)
    assert operators(result) == ["Cast", "Mul", "Div", "Cast"]


def test_numbers_that_float32_does_not_tell_apart_are_refused() -> None:
    source = "17 (double[2] x) => (double[2] y) <double w = {1e9}> { a = Add(x, w) b = Sub(a, w) y = Neg(b) }"
    with pytest.raises(
        CannotMigrate, match=r"in float32, output 'y': error 100 % in float32 \(limit 0\.01 %"
    ) as caught:
        converted(source, "fp32", settings=SEARCH)
    assert caught.value.code == "precision-lost"
    result = check(source, "fp32", share=0.0, settings=SEARCH, keep=("Add", "Sub"))
    assert operators(result) == ["Add", "Sub", "Cast", "Neg", "Cast"]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("kind", ["fp16", "bf16"])
def test_a_model_of_float64_goes_by_way_of_float32(name: str, kind: str) -> None:
    source = f"22 {BODIES[name]}"
    result, _ = converted(source, kind, settings=SEARCH)
    ports = {value.name for value in (*result.graph.input, *result.graph.output)}
    assert DOUBLE not in {dtype for value, dtype in types(result).items() if value not in ports}
    assert converted(result, kind, settings=SEARCH)[0] == result
    if kind == "fp16":
        check(source, kind, settings=SEARCH)


def test_the_result_is_compared_with_the_model_of_float64() -> None:
    """In float32 and in float16 the model computes the same, and something else than in float64."""
    source = """17 (double[2] x) => (double[2] y) <double w = {1e9}> {
        a = Add(x, w) b = Sub(a, w) c = Sigmoid(b) y = Tanh(c) }"""
    with pytest.raises(CannotMigrate, match=r"output 'y': error .* in simulated float16") as caught:
        converted(source, "fp16", settings=SEARCH)
    assert caught.value.code == "precision-lost"
