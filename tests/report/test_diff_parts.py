"""The parts of a diff: matched nodes, their entries, and what differs between weights, inputs, outputs and shapes."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from onnx_migrate.json_form import json_of
from onnx_migrate.model.matching import Matching, attribute_key, match_nodes
from onnx_migrate.report.diff_nodes import DiffEntry, changed_lines, node_changes
from onnx_migrate.report.diff_values import (
    constant_tensor,
    interface_changes,
    shape_changes,
    weight_changes,
)
from tests.harness import model


def nodes(*texts: str) -> list[onnx.NodeProto]:
    """Return nodes from texts such as "y=Relu(x)" and "name:y=Relu(x)"."""
    found = []
    for text in texts:
        name, _, rest = text.rpartition(":")
        output, _, call = rest.partition("=")
        operator, _, inputs = call.rstrip(")").partition("(")
        found.append(helper.make_node(operator, inputs.split(","), [output], name=name))
    return found


def test_each_way_of_matching() -> None:
    before = nodes("a=Relu(x)", "b=Neg(a)", "n:c=Exp(b)", "d=Sin(c)")
    after = nodes("a=Relu(x)", "q=Neg(a)", "n:r=Exp(x)", "d=Cos(r)", "e=Tan(d)")

    found = match_nodes(before, after, {})

    assert found.partner == {0: 0, 1: 1, 2: 2, 3: 3}
    assert found.renamed == {"q": "b", "r": "c"}
    assert (found.old("q"), found.old("d")) == ("b", "d")


def test_values_renamed_outside_are_known_inside() -> None:
    found = match_nodes(nodes("b=Relu(w)"), nodes("c=Relu(v)"), {"v": "w"})

    assert found.partner == {0: 0}
    assert match_nodes(nodes("b=Relu(w)"), nodes("c=Relu(v)"), {}).partner == {}


def test_equal_nodes_are_matched_in_their_order() -> None:
    found = match_nodes(nodes("a=Relu(x)", "b=Relu(x)"), nodes("p=Relu(x)", "q=Relu(x)"), {})

    assert found.partner == {0: 0, 1: 1}


def test_the_key_of_an_attribute_is_its_value() -> None:
    one, other = (helper.make_tensor(name, 1, [1], [2.0]) for name in "ab")

    assert attribute_key(helper.make_attribute("t", one)) == attribute_key(helper.make_attribute("t", other))
    assert attribute_key(helper.make_attribute("t", 1)) != attribute_key(helper.make_attribute("t", 2))


def test_the_old_value_comes_before_the_new_one() -> None:
    entry = DiffEntry("graph", "node y", ("axis = 0", "p = 1"), ("axis = 1", "q = 2"), "y = Op")

    assert list(entry.lines()) == [" y = Op", "-  axis = 0", "+  axis = 1", "-  p = 1", "+  q = 2"]
    assert list(DiffEntry("graph", "s", ("a", "b"), ("c",)).lines()) == ["-a", "-b", "+c"]
    assert json_of(entry) == {
        "body": "graph",
        "subject": "node y",
        "title": "y = Op",
        "removed": ["axis = 0", "p = 1"],
        "added": ["axis = 1", "q = 2"],
    }


def test_lines_by_key() -> None:
    found = list(changed_lines("model", {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}))

    assert [(entry.removed, entry.added) for entry in found] == [(("2",), ("4",)), (("3",), ()), ((), ("5",))]


def test_tensors_in_attributes_are_compared_by_value() -> None:
    def shape(*sizes: int, name: str = "") -> list:  # type: ignore[type-arg]
        tensor = helper.make_tensor(name, TensorProto.INT64, [len(sizes)], sizes)
        return [helper.make_node("ConstantOfShape", ["s"], ["y"], value=tensor)]

    def changes(old: list, new: list) -> list:  # type: ignore[type-arg]
        found = match_nodes(old, new, {})
        differences = node_changes(old, new, "graph", found, (None, None))
        return [(node.entry.removed, node.entry.added) for node in differences]

    assert changes(shape(2), shape(2, name="other")) == []
    assert changes(shape(2), shape(3)) == [(("value = int64[1] [2]",), ("value = int64[1] [3]",))]


def test_long_lists_that_differ_at_their_end_differ_in_text() -> None:
    lists = [[1] * 20 + [last] for last in (0, 1)]
    old, new = ([helper.make_node("Pad", ["x"], ["y"], pads=pads)] for pads in lists)

    (node,) = node_changes(old, new, "graph", match_nodes(old, new, {}), (None, None))

    assert node.entry.removed != node.entry.added


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
