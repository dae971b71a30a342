"""The line-by-line diff of two models."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

from onnx_migrate.report.diff import diff

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x) => (float[2] y) <float[2] k = {1.0, 2.0}> {
  a = Relu (x)
  b = Neg (a)
  y = Mul (b, k)
}"""


def lines(after: onnx.ModelProto) -> list[str]:
    return list(diff(onnx.parser.parse_model(MODEL), after, names=("old.onnx", "new.onnx")))


def test_equal_models_have_no_lines() -> None:
    assert lines(onnx.parser.parse_model(MODEL)) == []


def test_a_changed_node_is_removed_and_added_in_its_place() -> None:
    after = onnx.parser.parse_model(MODEL.replace("Neg (a)", "Abs (a)"))

    assert lines(after) == ["--- old.onnx", "+++ new.onnx", "@@ graph @@", "-b = Neg (a)", "+b = Abs (a)"]


def test_a_moved_node_is_shown_at_both_positions() -> None:
    after = onnx.parser.parse_model(MODEL)
    first = after.graph.node.pop(0)
    after.graph.node.insert(1, first)

    assert sorted(lines(after)[3:]) == ["+a = Relu (x)", "-a = Relu (x)"]


def test_a_large_weight_is_shown_by_a_digest_of_its_values() -> None:
    before, after = onnx.parser.parse_model(MODEL), onnx.parser.parse_model(MODEL)
    for proto, last in ((before, 0.0), (after, 1.0)):
        values = [0.0] * 19 + [last]
        proto.graph.initializer[0].CopyFrom(
            onnx.helper.make_tensor("k", onnx.TensorProto.FLOAT, [20], values)
        )

    _, _, body, old, new = diff(before, after, names=("a", "b"))

    assert body == "@@ graph @@"
    assert old.startswith("-weight k: float[20] #")
    assert new.startswith("+weight k: float[20] #")
    assert old[1:] != new[1:]


@pytest.mark.parametrize("declared", [False, True])
def test_shapes_of_inner_values_are_shown_only_if_they_were_declared(declared: bool) -> None:
    before, after = onnx.parser.parse_model(MODEL), onnx.parser.parse_model(MODEL)
    if declared:
        before.graph.value_info.append(onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [3]))
    after.graph.value_info.append(onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [2]))

    found = list(diff(before, after, names=("a", "b")))

    assert bool(found) == declared
    assert not declared or found[-1] == "+shape a: float[2]"


def test_nodes_of_subgraphs_have_a_heading_of_their_own() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) {
      y = If (c) <then_branch = t () => (float[2] p) { p = Relu (x) }, else_branch = e () => (float[2] q) { q = Neg (x) }>
    }"""
    before, after = onnx.parser.parse_model(text), onnx.parser.parse_model(text.replace("Relu", "Abs"))

    assert list(diff(before, after, names=("a", "b")))[2:] == [
        "@@ graph/y:then_branch @@",
        "-p = Relu (x)",
        "+p = Abs (x)",
    ]
