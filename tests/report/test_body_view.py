"""The view of one graph: its nodes without constants, and the layers that an exporter recorded."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.report.body_view import NodeMark, body_view, layer_of
from tests.harness import model
from tests.support.skips import Elsewhere, skip

KEY = "pkg.torch.onnx.name_scopes"


def recorded(text: str) -> onnx.NodeProto:
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    if not hasattr(node, "metadata_props"):
        skip("this onnx has no metadata of nodes", Elsewhere.NEWEST)
    node.metadata_props.add(key=KEY, value=text)
    return node


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        ("['', 'net', 'net.blocks.3', 'net.blocks.3.act', 'relu']", ("net", "blocks.3", "act")),
        ("['', 'relu']", ()),
        ("['', '_empty_nn_module_stack_from_metadata_hook', 'relu']", ()),
        ("['', 'a', 'b', 'add']", ("a", "b")),
        ("['', 'net.slice(None, -1, None)', 'relu']", ("net.slice(None, -1, None)",)),
        ("not a list", ()),
        ("", ()),
    ],
)
def test_the_layer_is_the_path_of_modules_without_the_node_itself(text: str, layer: tuple[str, ...]) -> None:
    assert layer_of(recorded(text)) == layer


def test_a_node_without_a_record_has_no_layer() -> None:
    assert layer_of(onnx.helper.make_node("Relu", ["x"], ["y"])) == ()


def test_constants_are_left_out_and_marks_are_those_of_nodes_and_ports() -> None:
    graph = model(
        "17 (float[2] x) => (float[2] y) { k = Constant <value = float[1] {2.}> () [m] y = Mul (x, k) }"
    ).graph
    view = body_view(
        "graph", graph, lambda node: NodeMark(3, "added"), {("output", "y"): NodeMark(4, "changed")}
    )

    assert [(node.name, node.operator, node.reads) for node in view.nodes] == [
        ("x", "input", ()), ("m", "Mul", (0,)), ("y", "output", (1,)),
    ]  # fmt: skip
    assert [(node.change, node.mark) for node in view.nodes] == [(None, ""), (3, "added"), (4, "changed")]
