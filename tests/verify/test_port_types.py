"""A model gets Casts where another has other element types at its inputs and outputs, and computes the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.files import load
from onnx_migrate.verify.port_types import with_types_of
from tests.harness import model, run

X = np.float32([1.5, -2, 3])


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("(float16[3] x) => (float16[3] y) { y = Abs(x) }", "(float[3] x) => (float[3] y) { y = Abs(x) }"),
        (
            "(float16[3] x) => (float16[3] y, float[3] z) { y = Abs(x)  x_cast = Cast<to = 1>(x)  z = Neg(x_cast) }",
            "(float[3] x) => (float[3] y, float[3] z) { y = Abs(x)  z = Neg(x) }",
        ),
        (
            "(float16[3] x, bool c) => (float16[3] y) { y = If(c) <then_branch = t () => (float16[3] a) { a = Abs(x) },"
            " else_branch = e () => (float16[3] b) { b = Neg(x) }> }",
            "(float[3] x, bool c) => (float[3] y) { y = If(c) <then_branch = t () => (float[3] a) { a = Abs(x) },"
            " else_branch = e () => (float[3] b) { b = Neg(x) }> }",
        ),
    ],
    ids=["both", "a-name-that-is-taken", "read-in-branches"],
)
def test_inputs_and_outputs_are_cast(narrow: str, wide: str) -> None:
    source, other = load(model(f"17 {narrow}")), model(f"17 {wide}")
    before = source.proto.SerializeToString()

    result = with_types_of(source, other).proto

    onnx.checker.check_model(result, full_check=True)
    assert [
        (value.name, value.type.tensor_type.elem_type)
        for value in (*result.graph.input, *result.graph.output)
    ] == [
        (value.name, value.type.tensor_type.elem_type) for value in (*other.graph.input, *other.graph.output)
    ]
    feeds = {"x": X} | ({"c": np.bool_(True)} if "bool c" in narrow else {})
    for one, expected in zip(run(result, feeds), run(other, feeds), strict=True):
        assert one.tolist() == expected.tolist()
    assert source.proto.SerializeToString() == before


def test_a_model_of_the_same_types_stays_itself() -> None:
    source = load(model("17 (float[3] x) => (float[3] y) { y = Abs(x) }"))
    assert with_types_of(source, source.proto) is source
