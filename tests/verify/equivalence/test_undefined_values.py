"""Elements that the standard leaves undefined are not compared, and all others are."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.equivalence.undefined_values import may_be_undefined, undefined_elements
from onnx_migrate.verify.evaluators import UNOPTIMIZED
from tests.verify.harness import check, net, runnable

NAN, INF = float("nan"), float("inf")


def undefined(text: str, **feed):
    model = runnable(text)
    masks: dict = {}
    for _, name, parts in undefined_elements(model, UNOPTIMIZED, [feed]):
        for array in parts.values():
            masks[name] = masks.get(name, False) | array
    return {name: mask.tolist() for name, mask in masks.items()}


@pytest.mark.parametrize(
    ("kind", "number", "numbers", "expected"),
    [
        ("int32", 6, [NAN, INF, -3e9, 2.0**31, 2147483520.0, -(2.0**31)], [1, 1, 1, 1, 0, 0]),
        ("int64", 7, [NAN, 1e19, -1e19, 9e18, 5.0, -5.5], [1, 1, 1, 0, 0, 0]),
        ("uint8", 2, [256.0, 255.5, -1.0, -0.5, 0.0, 300.0], [1, 0, 1, 0, 0, 1]),
    ],
)
def test_casts_of_numbers_out_of_range_are_undefined(kind, number, numbers, expected):
    text = f"(float[6] x) => ({kind}[6] y, float[6] z) {{ y = Cast<to={number}>(x) z = Abs(x) }}"
    assert undefined(text, x=np.float32(numbers)) == {"y": [bool(item) for item in expected]}


def test_shifts_by_the_width_of_the_type_are_undefined():
    text = '(uint8[4] x, uint8[4] s) => (uint8[4] y) { y = BitShift<direction="LEFT">(x, s) }'
    feed = {"x": np.full(4, 1, np.uint8), "s": np.array([0, 7, 8, 200], np.uint8)}
    assert undefined(text, **feed) == {"y": [False, False, True, True]}


def test_what_later_nodes_compute_from_undefined_elements_is_undefined():
    text = """(float[2,3] x) => (int64[2] y, float[2,3] z) {
        c = Cast<to=7>(x) y = ReduceSum<keepdims=0>(c, a) z = Cast<to=1>(c) }"""
    model = text.replace("(float[2,3] x) =>", "(float[2,3] x, int64[1] a) =>")
    feed = {"x": np.float32([[1, 2, 3], [4, NAN, 6]]), "a": np.array([1])}
    assert undefined(model, **feed) == {
        "y": [False, True],
        "z": [[False] * 3, [False, True, False]],
    }


def test_a_model_without_such_operators_has_none():
    assert not may_be_undefined(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))
    assert undefined("(float[4] x) => (float[4] y) { y = Div(x, x) }", x=np.zeros(4, np.float32)) == {}


LOG = "(float[100] x) => (int32[100] y) { a = Log(x) y = Cast<to=6>(a) }"


def test_elements_that_are_undefined_are_left_out_of_the_verdict():
    other = LOG.replace("y = Cast<to=6>(a)", "n = IsNaN(a) b = Where(n, k, a) y = Cast<to=6>(b)")
    source, result = net(LOG.replace("Log(x)", "Sqrt(x)")), net(other.replace("Log(x)", "Sqrt(x)"), k=77.0)
    verdict = check(source, result, Kind.VERIFIED)
    assert any(entry.left_out for entry in verdict.comparisons)
    check(
        source,
        net(other.replace("Log(x)", "Sqrt(x)").replace("Where(n, k, a)", "Where(n, k, x)"), k=77.0),
        Kind.DIFFERS,
    )


def test_float16_that_rounds_otherwise_beside_other_nodes_is_defined():
    text = "(float16[4] x) => (int32[4] y) { a = Mul(x, x) b = Add(a, x) y = Cast<to=6>(b) }"
    assert undefined(text, x=np.array([1.0009765625, 2.3, 100.0, -7.7], np.float16)) == {}
    assert undefined(text, x=np.array([1.5, NAN, 1.0, 2.0], np.float16)) == {"y": [False, True, False, False]}
