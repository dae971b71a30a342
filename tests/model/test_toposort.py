"""Nodes are sorted so that each reads what came before, sub-graphs included; a sorted body is not touched."""

from __future__ import annotations

import random

import onnx
import pytest
from onnx import helper

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.toposort import sort_model
from tests.harness import model, random_feeds, run, same

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (bool c, float[2] x) => (float[2] y) {
    a = Relu(x)
    b = Neg(a)
    y = If(c) <
        then_branch = t () => (float[2] q) { p = Add(a, b) q = Abs(p) },
        else_branch = e () => (float[2] b) { }
    >
}"""


def shuffled(text: str, seed: int) -> onnx.ModelProto:
    proto = model(text)
    nodes = list(proto.graph.node)
    random.Random(seed).shuffle(nodes)
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return proto


@pytest.mark.parametrize("seed", range(4))
def test_a_value_that_a_branch_captures_comes_first(seed: int) -> None:
    proto, feeds = shuffled(TEXT, seed), random_feeds(model(TEXT))

    sort_model(proto)

    assert [node.op_type for node in proto.graph.node] == ["Relu", "Neg", "If"]
    same(run(model(TEXT), feeds), run(proto, feeds), "sorted")


def test_a_sub_graph_is_sorted_and_named() -> None:
    proto = model(TEXT)
    branch = proto.graph.node[2].attribute[0].g
    nodes = list(branch.node)[::-1]
    del branch.node[:]
    branch.node.extend(nodes)

    assert sort_model(proto) == ["graph/y:then_branch"]
    assert [node.op_type for node in proto.graph.node[2].attribute[0].g.node] == ["Add", "Abs"]
    assert sort_model(proto) == []


def test_independent_nodes_keep_their_order() -> None:
    proto = model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) '
        "{ y = Add(b, a) b = Neg(x) a = Relu(x) d = Abs(x) }"
    )

    sort_model(proto)

    assert [node.output[0] for node in proto.graph.node] == ["b", "a", "d", "y"]


@pytest.mark.parametrize(
    ("inputs", "code"),
    [((("b", "a"), ("a", "b")), "cycle"), ((("a", "a"),), "cycle"), ((("x", "a"), ("x", "a")), "not-ssa")],
)
def test_no_order(inputs: tuple[tuple[str, str], ...], code: str) -> None:
    nodes = [helper.make_node("Relu", [read], [made], name=f"n_{read}") for read, made in inputs]
    proto = helper.make_model(helper.make_graph(nodes, "g", [], []))

    with pytest.raises(CannotMigrate) as caught:
        sort_model(proto)

    assert caught.value.code == code
    assert caught.value.where is not None
    assert caught.value.where.node.startswith("n_")


def test_a_cycle_is_named_and_not_what_reads_from_it() -> None:
    names = [("d", "e"), ("c", "d"), ("b", "c"), ("a", "b"), ("c", "a")]
    nodes = [helper.make_node("Relu", [read], [made]) for read, made in names]
    proto = helper.make_model(helper.make_graph(nodes, "g", [], []))

    with pytest.raises(CannotMigrate) as caught:
        sort_model(proto)

    assert caught.value.where is not None
    assert caught.value.where.node == "c"
    assert caught.value.reason == "reads its own output through 'b', 'a': the nodes form a cycle"
