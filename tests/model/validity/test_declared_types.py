"""Declared types: nested ones are looked into, and an output needs none."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.model.validity.declared_types import declared_type_faults


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
