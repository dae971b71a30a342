"""What operators accept, whatever the shapes are."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verify import Kind
from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.operator_ranges import (
    accepted_range,
    exact_inputs,
    inputs_passed_through,
)
from tests.verify.harness import check, net


def node(operator, inputs, domain="", **attributes):
    return onnx.helper.make_node(operator, inputs, ["y"], domain=domain, **attributes)


def accepted(operator, index, count=3, domain="", **attributes):
    facts = Facts(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))
    return accepted_range(node(operator, ["x"] * count, domain, **attributes), index, facts)


def test_only_restricting_inputs_have_a_range():
    assert accepted("Sqrt", 0).low > 0
    assert accepted("Relu", 0) is None
    assert accepted("Dropout", 1).high < 1
    assert accepted("Mod", 1).discrete


def test_strings_are_numbers_where_they_are_cast_and_keys_where_they_are_looked_up():
    assert all(float(word) is not None for word in accepted("Cast", 0, to=1).words)
    assert accepted("Cast", 0, to=8) is None
    keys = accepted("LabelEncoder", 0, 1, "ai.onnx.ml", keys_strings=["a", "b"], values_int64s=[1, 2])
    assert keys.words == ("a", "b")
    numbers = accepted("LabelEncoder", 0, 1, "ai.onnx.ml", keys_int64s=[4, 9], values_int64s=[1, 2])
    assert (numbers.low, numbers.high, numbers.words) == (4, 9, ())


def test_elements_pass_through_some_inputs():
    assert list(inputs_passed_through(node("Concat", ["a", "b", "c"], axis=0))) == [0, 1, 2]
    assert tuple(inputs_passed_through(node("Where", ["c", "a", "b"]))) == (1, 2)
    assert tuple(inputs_passed_through(node("Reshape", ["x", "s"]))) == (0,)
    assert not tuple(inputs_passed_through(node("Relu", ["x"])))


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
