"""Names of values, declared types and tensors of whole models."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from onnx_migrate.model.validity.structure import declared_type_faults, structure_faults
from onnx_migrate.model.validity.values import definitions, value_faults
from tests.harness import model
from tests.support.bad_models import bad_models, good_model


def test_a_valid_model_has_none() -> None:
    assert list(structure_faults(good_model())) == []


def test_external_data_is_judged_by_its_length() -> None:
    proto = good_model()
    tensor = proto.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL

    assert list(structure_faults(proto, lambda asked: 8)) == []
    assert [fault.code for fault in structure_faults(proto, lambda asked: 4)] == ["data-size"]


def test_the_faults_of_tensors_are_all_found_here() -> None:
    for bad in bad_models():
        if bad.code in ("data-size", "bad-dims", "two-data-forms", "unknown-dtype"):
            assert bad.code in [fault.code for fault in structure_faults(bad.proto)], bad.name


def codes(graph: onnx.GraphProto, *, main: bool = True) -> list[str]:
    return [fault.code for fault in declared_type_faults(graph, "graph", main=main)]


def test_types_of_all_kinds() -> None:
    inner = helper.make_tensor_type_proto(1, None)
    kinds = [
        inner,
        helper.make_sequence_type_proto(inner),
        helper.make_optional_type_proto(inner),
        helper.make_map_type_proto(onnx.TensorProto.STRING, inner),
        helper.make_sparse_tensor_type_proto(1, [2]),
    ]
    graph = helper.make_graph(
        [], "g", [helper.make_value_info(str(i), kind) for i, kind in enumerate(kinds)], []
    )
    assert codes(graph) == []

    graph.input[1].type.sequence_type.elem_type.tensor_type.elem_type = 0
    graph.input[2].type.optional_type.elem_type.tensor_type.elem_type = 99
    graph.input[3].type.map_type.value_type.tensor_type.elem_type = 77
    graph.input[4].type.sparse_tensor_type.elem_type = 0
    assert codes(graph) == ["no-dtype", "unknown-dtype", "unknown-dtype", "no-dtype"]


def test_only_inputs_of_the_main_graph_need_a_type() -> None:
    graph = helper.make_graph([], "g", [onnx.ValueInfoProto(name="x")], [onnx.ValueInfoProto(name="y")])

    assert codes(graph) == ["no-dtype"]
    assert codes(graph, main=False) == []


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
