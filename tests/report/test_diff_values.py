"""What differs between the weights, inputs, outputs and declared shapes of two bodies."""

from __future__ import annotations

from onnx import helper

from onnx_migrate.report.diff_values import (
    constant_tensor,
    interface_changes,
    shape_changes,
    weight_changes,
)
from onnx_migrate.report.matching import Matching
from tests.harness import model

HEAD = '<ir_version: 8, opset_import: ["": 17]> g '


def test_weights_with_another_name_are_told_to_the_caller() -> None:
    before = model(
        HEAD
        + "(float x) => (float y) <float a = {1.}, float b = {2.}, float c = {2.}> { y = Sum(x, a, b, c) }"
    )
    after = model(
        HEAD
        + "(float x) => (float y) <float a = {3.}, float d = {2.}, float e = {4.}> { y = Sum(x, a, d, e) }"
    )
    renamed: dict[str, str] = {}

    found = list(weight_changes(before.graph, after.graph, "graph", renamed, (None, None)))

    assert renamed == {"d": "b"}
    assert [(entry.removed, entry.added) for entry in found] == [
        (("weight a: float[] 1.0",), ("weight a: float[] 3.0",)),
        (("weight c: float[] 2.0",), ()),
        ((), ("weight e: float[] 4.0",)),
    ]


def test_inputs_of_a_branch_are_compared_by_their_places() -> None:
    one = model(HEAD + "(float[2] p) => (float[2] y) { y = Relu(p) }").graph
    other = model(HEAD + "(float[2] q) => (float[2] z) { z = Relu(q) }").graph
    renamed = Matching(renamed={"q": "p", "z": "y"})

    assert list(interface_changes(one, other, "graph/n:body", renamed)) == []
    assert len(list(interface_changes(one, other, "graph/n:body", Matching()))) == 2
    assert len(list(interface_changes(one, other, "graph", renamed))) == 4


def test_a_declared_shape_that_is_dropped_is_shown() -> None:
    before = model(HEAD + "(float[2] x) => (float[2] y) { a = Relu(x) y = Relu(a) }").graph
    after = model(HEAD + "(float[2] x) => (float[2] y) { b = Relu(x) y = Relu(b) }").graph
    before.value_info.append(helper.make_tensor_value_info("a", 1, [2]))
    found = Matching(renamed={"b": "a"})

    (entry,) = shape_changes(before, after, "graph", found)
    assert (entry.removed, entry.added) == (("shape a: float[2]",), ())
    after.value_info.append(helper.make_tensor_value_info("b", 1, [2]))
    assert list(shape_changes(before, after, "graph", found)) == []


def test_only_constants_of_one_tensor_are_weights() -> None:
    tensor = helper.make_tensor("t", 1, [1], [1.0])

    assert constant_tensor(helper.make_node("Constant", [], ["k"], value=tensor)) == tensor
    assert constant_tensor(helper.make_node("Constant", [], ["k"], value_float=1.0)) is None
    assert constant_tensor(helper.make_node("Constant", [], ["k"], domain="com.acme", value=tensor)) is None
