"""Constant below opsets 12, 11 and 9: each attribute and type, as input of a node and as an output of the body."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.steps import check_down, lower


def text(attribute: str, dtype: str, opset: int = 12) -> str:
    return f"""{opset} (float[1] x) => ({dtype}[] y, float[] z)
        {{ y = Constant <{attribute}> ()  z = Identity (x) }}"""


@pytest.mark.parametrize(
    ("attribute", "dtype"),
    [
        ("value_float = 1.5", "float"),
        ("value_floats = [1.5, -0.0, 3.0]", "float"),
        ("value_int = 9223372036854775807", "int64"),
        ("value_ints = [1, -2]", "int64"),
        ('value_string = "a"', "string"),
        ('value_strings = ["a", "b"]', "string"),
        ("value = int32[2] {1, 2}", "int32"),
        ("value = bool {1}", "bool"),
        ("value = double[2] {0.1, 0.2}", "double"),
    ],
)
def test_every_attribute(attribute: str, dtype: str) -> None:
    check_down(text(attribute, dtype), 11, 10, 9)
    check_down(text(attribute, dtype), 8, 7, variants=("plain", "symbolic", "if"))


@pytest.mark.parametrize("name", ["value_ints", "value_floats"])
def test_an_empty_list(name: str) -> None:
    node = helper.make_node("Constant", [], ["y"])
    node.attribute.append(helper.make_attribute(name, [], attr_type=7 if name == "value_ints" else 6))
    kind = TensorProto.INT64 if name == "value_ints" else TensorProto.FLOAT
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", kind, [0])])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7)
    check_down(source, 11, 8, feeds={}, variants=("plain",))


@pytest.mark.parametrize("linear", [True, False])
def test_a_sparse_tensor(linear: bool) -> None:
    values = helper.make_tensor("v", TensorProto.FLOAT, [2], [1.5, -2.0])
    indices = helper.make_tensor(
        "i", TensorProto.INT64, [2] if linear else [2, 2], [1, 5] if linear else [0, 1, 1, 2]
    )
    node = helper.make_node("Constant", [], ["c"])
    node.attribute.append(
        helper.make_attribute("sparse_value", helper.make_sparse_tensor(values, indices, [2, 3]))
    )
    add = helper.make_node("Add", ["x", "c"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([node, add], "g", info[:1], info[1:])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)
    x = np.ones((2, 3), np.float32)
    check_down(source, 10, 9, 7, feeds={"x": x}, expected=[np.array([[1, 2.5, 1], [1, 1, -1]], np.float32)])


def test_an_attribute_that_each_call_sets() -> None:
    source = """12 (float[2, 3] x) => (float[] y, float[] z) { y = local.F <by = [2.0, 3.0, 4.0]> (x)
            z = local.F <by = [5.0]> (x)
        }
        <domain: "local", opset_import: ["": 12]> F <by> (a) => (b) { c = Constant <value_floats: floats = @by> ()
            b = Mul (a, c) }"""
    check_down(source, 11, 8, variants=("plain", "symbolic", "if"))


def test_integers_in_a_function() -> None:
    source = """9 (float[2, 3] x) => (float[] y) { y = local.F (x) }
        <domain: "local", opset_import: ["": 9]> F (a) => (b) { s = Constant <value = int64[2] {3, 2}> ()
            b = Reshape (a, s) }"""
    check_down(source, 8, 7, variants=("plain", "if"))
    assert not lower(source, 8)[0].functions


def test_a_constant_that_a_branch_gives() -> None:
    source = """12 (bool c) => (int64[] y) {
            y = If (c) <then_branch = a () => (int64[] p) { p = Constant <value_int = 3> () },
                else_branch = b () => (int64[] q) { q = Constant <value_int = 4> () }> }"""
    for value in (True, False):
        check_down(source, 11, 8, feeds={"c": np.array(value)}, variants=("plain", "function"))


@pytest.mark.parametrize(
    "value", ["", "<value = int64[1] {3}>", "<value = bool[1] {1}>", "<value = double[1] {0.1}>"]
)
@pytest.mark.parametrize("shape", [[2, 3], [], [0, 2]], ids=str)
def test_constant_of_shape(value: str, shape: list[int]) -> None:
    dtype = value.partition("= ")[2].partition("[")[0] or "float"
    source = f"""9 () => ({dtype}[] y)
        <int64[{len(shape)}] s = {{{", ".join(map(str, shape))}}}> {{ y = ConstantOfShape {value} (s) }}"""
    check_down(source, 8, 7, feeds={}, variants=("plain", "if", "function"))


def test_constant_of_shape_at_run_time() -> None:
    source = "9 (int64[2] s) => (int64[] y) { y = ConstantOfShape <value = int64[1] {3}> (s) }"
    check_down(source, 8, feeds={"s": np.array([2, 3])}, variants=("plain", "symbolic", "if", "function"))
