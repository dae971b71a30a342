"""Optionals below 18, 16 and 15."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.lowering import check_down

X = {"x": np.array([1, 2], np.float32)}


def optional_of(tensor: bool) -> onnx.TypeProto:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    return helper.make_optional_type_proto(element if tensor else helper.make_sequence_type_proto(element))


def source(nodes: list[onnx.NodeProto], outputs: list[str], opset: int = 18) -> onnx.ModelProto:
    kinds = {"y": (TensorProto.FLOAT, None), "has": (TensorProto.BOOL, [])}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info(name, *kinds[name]) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(operator: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], **attributes)


def test_tensors_are_no_optionals() -> None:
    nodes = [node("OptionalHasElement", ["x"], "has"), node("OptionalGetElement", ["x"], "y")]
    check_down(source(nodes, ["has", "y"]), 17, 14, 10, 9, feeds=X, expected=[np.array(True), X["x"]])


def test_no_input() -> None:
    nodes = [helper.make_node("OptionalHasElement", [], ["has"]), node("Relu", ["x"], "y")]
    check_down(source(nodes, ["has", "y"]), 17, 14, 9, feeds=X, expected=[np.array(False), X["x"]])


def test_sequences_are_no_optionals() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], "s"),
        node("OptionalHasElement", ["s"], "has"),
        node("OptionalGetElement", ["s"], "t"),
        node("ConcatFromSequence", ["t"], "y", axis=0),
    ]
    expected = [np.array(True), np.concatenate([X["x"], X["x"]])]
    check_down(source(nodes, ["has", "y"]), 17, 14, 13, 11, 10, feeds=X, expected=expected)


@pytest.mark.parametrize("opset", [18, 17, 16])
def test_built_and_read(opset: int) -> None:
    nodes = [
        node("Optional", ["x"], "o"),
        node("Identity", ["o"], "p"),
        node("OptionalHasElement", ["p"], "has"),
        node("OptionalGetElement", ["p"], "y"),
    ]
    expected = [np.array(True), X["x"]]
    check_down(source(nodes, ["has", "y"], opset), *range(opset - 1, 13, -1), 9, feeds=X, expected=expected)


def test_empty() -> None:
    nodes = [
        helper.make_node("Optional", [], ["o"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2])),
        node("OptionalHasElement", ["o"], "has"),
        node("Relu", ["x"], "y"),
    ]
    check_down(source(nodes, ["has", "y"]), 17, 14, 9, feeds=X, expected=[np.array(False), X["x"]])


def test_a_sequence_inside() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], "s"),
        node("Optional", ["s"], "o"),
        node("OptionalGetElement", ["o"], "t"),
        node("ConcatFromSequence", ["t"], "y", axis=0),
    ]
    expected = [np.concatenate([X["x"], X["x"]])]
    check_down(source(nodes, ["y"]), 17, 15, 14, 13, 11, 10, feeds=X, expected=expected)


@pytest.mark.parametrize("tensor", [True, False])
def test_an_optional_of_the_caller_is_refused(tensor: bool) -> None:
    model = source([node("OptionalHasElement", ["o"], "has")], ["has"])
    model.graph.input.append(onnx.ValueInfoProto(name="o", type=optional_of(tensor)))
    expected = [np.array(True)]
    given = {**X, "o": X["x"]}
    check_down(model, 14, feeds=given, expected=expected, refused={"plain": "no-equal"}, variants=("plain",))


def test_an_optional_that_is_an_output_is_refused() -> None:
    model = source([node("Optional", ["x"], "o")], [])
    model.graph.output.append(onnx.ValueInfoProto(name="o", type=optional_of(True)))
    check_down(model, 14, feeds=X, expected=[X["x"]], refused={"plain": "no-equal"}, variants=("plain",))
