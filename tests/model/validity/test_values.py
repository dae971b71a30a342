"""Names of values: what a body defines, and names of the bodies around it."""

from __future__ import annotations

from onnx_migrate.model.validity.values import definitions, value_faults
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
    y = If (c) <then_branch = t () => (float[2] p) { p = Add (x, w) }, else_branch = e () => (float[2] q) { q = Neg (x) }>
}"""


def test_a_branch_reads_names_of_the_graph_around_it() -> None:
    graph = model(TEXT).graph
    branch = graph.node[0].attribute[0].g

    assert definitions(graph).names == {"x", "c", "w", "y"}
    assert list(value_faults(branch, "b", definitions(branch), (definitions(graph).names,))) == []
    alone = list(value_faults(branch, "b", definitions(branch), ()))
    assert [fault.code for fault in alone] == ["undefined-name", "undefined-name"]


def test_an_output_that_is_left_out_twice_is_no_repetition() -> None:
    graph = model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[2] a) { a, b = Split <num_outputs = 2> (x) }'
    ).graph
    graph.node[0].output[1] = ""
    graph.node.add(op_type="Split", input=["x"], output=["b", ""])

    assert list(value_faults(graph, "graph", definitions(graph), ())) == []


def test_an_input_may_be_an_output() -> None:
    graph = model(TEXT).graph
    graph.output[0].name = "x"

    assert list(value_faults(graph, "graph", definitions(graph), ())) == []


def test_a_node_without_operator_and_a_graph_without_output() -> None:
    graph = model(TEXT).graph
    graph.node.add(op_type="", input=["x"], output=["z"])
    del graph.output[:]

    faults = list(value_faults(graph, "graph", definitions(graph), ()))

    assert [(fault.code, fault.where and fault.where.node) for fault in faults] == [
        ("invalid-node", "z"),
        ("output-not-produced", ""),
    ]
