"""Traversal: bodies and nodes of a model, what a node reads, what counts as an initializer, and new names."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.model.graphs import (
    all_nodes,
    bodies,
    fed_inputs,
    initializer_names,
    initializer_types,
    names_read,
    nested_bodies,
    producers,
    stored_weights,
    weight_tensors,
)
from onnx_migrate.model.names import Names
from tests.harness import model

NESTED = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (bool c, float[2] x) => (float[2] y) <float[2] w = {1., 2.}> {
    a = Add(x, w)
    y = If(c) <
        then_branch = t () => (float[2] p) {
            q = If(c) <then_branch = tt () => (float[2] r) { r = Relu(a) },
                       else_branch = te () => (float[2] s) { s = Neg(x) }>
            p = Abs(q)
        },
        else_branch = e () => (float[2] a) { }
    >
}
<domain: "f", opset_import: ["": 17]>
Inner (u) => (v) { v = Sin(u) }"""


def test_bodies_have_paths_keys_and_the_owner_of_their_opset_imports() -> None:
    proto = model(NESTED)

    found = {located.path: located for located in bodies(proto)}

    assert list(found) == [
        "graph",
        "graph/y:then_branch",
        "graph/y:then_branch/q:then_branch",
        "graph/y:then_branch/q:else_branch",
        "graph/y:else_branch",
        "function f:Inner",
    ]
    assert found["graph/y:then_branch/q:else_branch"].key == (1, "then_branch", 0, 0, "else_branch", 0)
    assert found["graph/y:then_branch"].owner is proto
    assert found["function f:Inner"].owner is proto.functions[0]
    assert [key for key, _ in nested_bodies(proto.graph)] == [
        located.key for located in found.values() if located.owner is proto
    ]


def test_every_node_is_visited_once_and_before_those_inside_it() -> None:
    operators = [node.op_type for node in all_nodes(model(NESTED))]

    assert operators == ["Add", "If", "If", "Relu", "Neg", "Abs", "Sin"]


def test_nodes_of_a_body_may_be_replaced_while_bodies_are_visited() -> None:
    proto = model(NESTED)

    for located in bodies(proto):
        nodes = list(located.body.node)
        del located.body.node[:]
        located.body.node.extend(nodes)
        for node in located.body.node:
            node.doc_string = "seen"

    assert all(node.doc_string == "seen" for node in all_nodes(proto))


def test_a_node_reads_the_free_names_of_its_sub_graphs_and_not_their_own() -> None:
    proto = model(NESTED)

    # `a` twice: Relu reads it, and the other branch returns it.
    assert sorted(names_read(proto.graph.node[1])) == ["a", "a", "c", "c", "x"]


def test_an_optional_input_that_is_left_out_is_no_name() -> None:
    assert names_read(helper.make_node("Resize", ["x", "", "s"], ["y"])) == ["x", "s"]


def test_producers_are_those_of_the_body_alone() -> None:
    graph = model(NESTED).graph
    graph.node.append(helper.make_node("Dropout", ["x"], ["d", ""]))

    assert {name: node.op_type for name, node in producers(graph).items()} == {
        "a": "Add",
        "y": "If",
        "d": "Dropout",
    }


def test_sparse_initializers_are_initializers() -> None:
    values = numpy_helper.from_array(np.array([2.0], np.float64), "w")
    places = numpy_helper.from_array(np.array([1], np.int64), "places")
    graph = model(
        '<ir_version: 8, opset_import: ["": 17]> g (double[2] x, double[2] w, double[2] b) => (double[2] y) '
        "<double[1] b = {1.}> { a = Add(x, w) y = Add(a, b) }"
    ).graph
    graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2]))

    assert initializer_names(graph) == {"w", "b"}
    assert [value.name for value in fed_inputs(graph)] == ["x"]
    assert {name: (dtype, dims) for name, dtype, dims in initializer_types(graph)} == {
        "b": (onnx.TensorProto.DOUBLE, (1,)),
        "w": (onnx.TensorProto.DOUBLE, (2,)),
    }


@pytest.mark.parametrize("domain", ["", "ai.onnx", "com.acme"])
def test_graphs_of_custom_operators_are_found(domain: str) -> None:
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["r"])], "inner", [], [])
    operator = "If" if domain != "com.acme" else "Twice"
    node = helper.make_node(operator, ["x"], ["y"], domain=domain, then_branch=inner)
    proto = helper.make_model(helper.make_graph([node], "g", [], []))

    assert [node.op_type for node in all_nodes(proto)] == [operator, "Relu"]


def test_weights_are_the_constants_of_all_bodies() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17, "f": 1]>
    g (float[2] x, bool c) => (float[2] y) <float[2] w = {1.0, 2.0}> {
        y = If (c) <
            then_branch = t () => (float[2] a) <float[2] v = {3.0, 4.0}> {
                k = Constant<value = float[2] {5.0, 6.0}> ()
                a = Add (k, v)
            },
            else_branch = e () => (float[2] b) { n = Constant<value_float = 1.0> () s = f.h (x) b = Add (s, w) }
        >
    }
    <domain: "f", opset_import: ["": 17]> h (x) => (y) { k = Constant<value = float[2] {7.0, 8.0}> () y = Mul (x, k) }""")

    firsts = sorted(onnx.numpy_helper.to_array(tensor)[0] for tensor in weight_tensors(model))

    assert firsts == [1.0, 3.0, 5.0, 7.0]


def test_a_sparse_weight_is_its_values_and_its_indices() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Neg (x) }'
    )
    model.graph.sparse_initializer.add().values.name = "s"
    node = model.graph.node.add(op_type="Constant", output=["k"])
    node.attribute.add(name="sparse_value").sparse_tensor.values.name = "t"

    assert [tensor.name for tensor in weight_tensors(model)] == ["s", "", "t", ""]
    assert len(list(stored_weights(bodies(model)))) == 2


TEXT = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
g (bool c, float[2] x) => (float[2] y) <float[2] weight = {1., 2.}> {
    [node] y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, weight) },
                      else_branch = e () => (float[2] q) { q = Neg(x) }>
}
<domain: "f", opset_import: ["": 17]>
Block (argument) => (b) { b = Sin(argument) }"""


def test_names_of_values_nodes_weights_branches_and_functions_are_taken() -> None:
    names = Names(model(TEXT))

    for taken in ("x", "y", "weight", "node", "p", "q", "argument", "b"):
        assert names.fresh(taken) == f"{taken}_1"


def test_a_name_is_returned_once() -> None:
    names = Names(model(TEXT))

    assert [names.fresh("free") for _ in range(3)] == ["free", "free_1", "free_2"]
