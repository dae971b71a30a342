"""Tables that nodes compute from constants: a node that would compute too much, or fails, leaves its reader refused."""

from __future__ import annotations

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.errors import CannotMigrate
from tests.support.feature_maps import Array, Size, cells, detector, opened

SIZE = (64, 96)
_MEGABYTES = 40e6
"""More than these small models take, and less than an array of 25 million numbers."""


def _points(size: Size) -> Array:
    parts = [np.stack(((x + 0.5) * s, (y + 0.5) * s), 1) for s, y, x in cells(size, (8, 16))]
    return np.concatenate(parts)[None].astype(np.float32)


def _with_table_of(nodes: list[onnx.NodeProto], **constants: Array) -> onnx.ModelProto:
    """Return a detector that reads its table from the last of these nodes, which compute from constants alone."""
    source = detector(SIZE, _points(SIZE))
    decode = next(node for node in source.graph.node if node.name == "decode")
    decode.input[1] = nodes[-1].output[0]
    others = list(source.graph.node)
    del source.graph.node[:]
    source.graph.node.extend([*nodes, *others])
    source.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return source


def require_refused_in_little_memory(source: onnx.ModelProto) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CannotMigrate, match="'scaled'"):
            opened(source)
        assert tracemalloc.get_traced_memory()[1] < _MEGABYTES
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("operator", ["MatMul", "Pow", "Add"])
def test_a_product_of_a_long_and_a_wide_constant_is_not_computed(operator: str) -> None:
    """The inputs have few numbers, and the output has 25 million."""
    source = _with_table_of(
        [
            helper.make_node(operator, ["long", "wide"], ["product"]),
            helper.make_node("ReduceMax", ["product"], ["most"], keepdims=0),
            helper.make_node("Div", ["table", "most"], ["scaled"]),
        ],
        long=np.ones((5000, 1), np.float32),
        wide=np.ones((1, 5000), np.float32),
    )
    require_refused_in_little_memory(source)


_READERS: dict[str, list[onnx.NodeProto]] = {
    "Add": [helper.make_node("Add", ["row", "column"], ["product"])],
    "Min": [helper.make_node("Min", ["row", "column"], ["product"])],
    "MatMul": [
        helper.make_node("Cast", ["column"], ["long"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Cast", ["row"], ["wide"], to=onnx.TensorProto.FLOAT),
        helper.make_node("MatMul", ["long", "wide"], ["product"]),
    ],
    "Expand": [helper.make_node("Expand", ["column", "expanded"], ["product"])],
    "Tile": [helper.make_node("Tile", ["row", "repeats"], ["product"])],
}


@pytest.mark.parametrize("operator", _READERS)
def test_lengths_that_follow_from_elements_count_too(operator: str) -> None:
    """Shape inference knows no length of a NonZero, although its input is a constant."""
    source = _with_table_of(
        [
            helper.make_node("NonZero", ["ones"], ["row"]),
            helper.make_node("Transpose", ["row"], ["column"]),
            *_READERS[operator],
            helper.make_node("Cast", ["product"], ["numbers"], to=onnx.TensorProto.FLOAT),
            helper.make_node("ReduceMax", ["numbers"], ["most"], keepdims=0),
            helper.make_node("Div", ["table", "most"], ["scaled"]),
        ],
        ones=np.ones(5000, np.float32),
        expanded=np.array([1, 5000], np.int64),
        repeats=np.array([5000, 1], np.int64),
    )
    require_refused_in_little_memory(source)


def test_an_attribute_that_each_call_of_a_function_sets_is_no_constant() -> None:
    """CumSum would count from 1 without its attribute, and with it from 0."""
    source = detector(SIZE, np.zeros(1, np.float32), (8,))
    del source.graph.output[:], source.graph.value_info[:]
    source.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [None] * 3))
    body = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        for name, array in {
            "ones": np.ones((1, 8, 12, 1), np.float32),
            "axis": np.array(2, np.int64),
            "cells": np.array([1, 96, 1], np.int64),
        }.items()
    ]
    body += [
        helper.make_node("CumSum", ["ones", "axis"], ["columns"]),
        helper.make_node("Reshape", ["columns", "cells"], ["x"]),
        helper.make_node("Add", ["a", "x"], ["b"]),
    ]
    body[3].attribute.add(name="exclusive", ref_attr_name="from_0", type=onnx.AttributeProto.INT)
    opset = [helper.make_opsetid("", 17)]
    source.functions.append(
        helper.make_function("my", "Shift", ["a", "f"], ["b"], body, opset, attributes=["from_0"])
    )
    source.opset_import.append(helper.make_opsetid("my", 1))
    source.graph.node.append(helper.make_node("Shift", ["y", "f8"], ["z"], domain="my", from_0=1))

    with pytest.raises(CannotMigrate, match="axis 1 of 'x' has the fixed length 96"):
        opened(source)


def test_a_node_that_fails_on_its_constants_gives_no_table() -> None:
    """The index is beyond the table: onnx infers the shape all the same, and its evaluator raises an IndexError."""
    scatter = helper.make_node("ScatterND", ["table", "beyond", "row"], ["written"])
    source = _with_table_of(
        [scatter], beyond=np.array([[7]], np.int64), row=np.zeros((1, 120, 2), np.float32)
    )

    with pytest.raises(CannotMigrate, match="'written'"):
        opened(source)
