"""Types follow the nodes; what is known must fit the operators, and what is not known contradicts nothing."""

from __future__ import annotations

import pytest

from onnx_migrate.model.validity.node_types import type_faults
from tests.harness import model

HEAD = '<ir_version: 8, opset_import: ["": 17, "com.acme": 1]>'


def complaints(text: str) -> list[str]:
    return [fault.reason for fault in type_faults(model(f"{HEAD} g {text}"))]


@pytest.mark.parametrize(
    "text",
    [
        "(float[2] x) => (int64[1] y) { y = Shape(x) }",
        "(float[2] x) => (float[2] y) { a = Cast<to = 7>(x) b = Cast<to = 1>(a) y = Add(b, x) }",
        "(float[2] x) => (float[2] y) { a = com.acme.Anything(x) y = Add(a, x) }",
        "(int64[1] x) => (float[N] y) { a = ConstantOfShape(x) y = Neg(a) }",
        "(int64[1] x) => (int32[N] y) { a = ConstantOfShape<value = int32[1] {0}>(x) y = Neg(a) }",
        "(float[2] x) => (float[N] y) { s = SequenceConstruct(x, x) y = ConcatFromSequence<axis = 0>(s) }",
        "(float[2] x, int64 n, bool c) => (float[2] y) {"
        " y = Loop(n, c, x) <body = b (i, k, v) => (o, w) { o = Identity(k) w = Add(v, x) }> }",
        "(float[2] x, bool c) => (float[2] y) {"
        " y = If(c) <then_branch = t () => (p) { p = Neg(x) }, else_branch = e () => (q) { q = Abs(x) }> }",
    ],
)
def test_valid_ones(text: str) -> None:
    assert complaints(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }", "takes only of one type"),
        (
            "(float[2] x) => (float[2] y) { a = Cast<to = 7>(x) y = Add(x, a) }",
            "tensor(int64) as input 1 (B)",
        ),
        ("(float[2] x) => (int64[2] y) { y = Relu(x) }", "tensor(int64) as output 0 (Y)"),
        ("(float[2] x) => (int64[2] y) { y = Cast<to = 1>(x) }", "declared as tensor(int64)"),
        ("(string[2] x) => (string[2] y) { y = Neg(x) }", "which Neg-13 does not take there"),
        ("(int64[1] x) => (int64[N] y) { a = ConstantOfShape(x) y = Add(a, x) }", "takes only of one type"),
        (
            "(float[2] x, int64 n, bool c) => (float[2] y) {"
            " y = Loop(n, c, x) <body = b (i, k, v) => (o, w) { o = Identity(k) w = Add(v, i) }> }",
            "takes only of one type",
        ),
        (
            "(float[2] x, bool c) => (int64[2] z) {"
            " y = If(c) <then_branch = t () => (p) { p = Neg(x) }, else_branch = e () => (q) { q = Abs(x) }> z = Abs(y) }",
            "takes only of one type",
        ),
    ],
)
def test_types_that_do_not_fit(text: str, says: str) -> None:
    found = complaints(text)

    assert len(found) == 1
    assert says in found[0]


@pytest.mark.parametrize("key", ["int64", "string"])
def test_maps_of_a_classifier_are_valid(key: str) -> None:
    labels = "classlabels_int64s = [0, 1]" if key == "int64" else 'classlabels_strings = ["a", "b"]'
    proto = model(
        '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[2,2] x)'
        f" => (seq(map({key}, float)) y) {{ y = ai.onnx.ml.ZipMap<{labels}>(x) }}"
    )
    assert list(type_faults(proto)) == []


def test_maps_with_keys_of_another_type_are_not() -> None:
    proto = model(
        '<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[2,2] x)'
        " => (seq(map(int32, float)) y) { y = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(x) }"
    )
    assert "seq(map(int32, float))" in next(type_faults(proto)).reason
