"""Shape arithmetic returns what ONNX Runtime returns."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from onnx_migrate.facts.shape_arithmetic import ELEMENTWISE, LARGEST, MOVEMENT, attributes_of, compute

F = np.float32
INTS = np.array([7, -7, 4, 0], np.int64)
TWOS = np.array([2, 2, -3, 5], np.int64)
FLOATS = np.array([2.5, -2.5, 0.0, 7.0], F)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0], F)
RUNS = INTS > 0
GRID = np.arange(6, dtype=np.int64).reshape(2, 3)
NONE = np.zeros(0, np.int64)
UPS = np.array([25 / 13, 31 / 7, 224 / 706, 9 / 5], F)


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


VALID: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("Add", [INTS, TWOS], {}),
    ("Add", [INTS, ints(1)], {}),
    ("Sub", [INTS, TWOS], {}),
    ("Sub", [NONE, NONE], {}),
    ("Mul", [INTS, TWOS], {}),
    ("Mul", [np.array([13, 7, 706, 5], F), UPS], {}),  # rounded to float32: 25, 30.999998, 223.99998, 9
    ("Div", [INTS, TWOS], {}),  # towards zero
    ("Div", [FLOATS, UPS], {}),
    ("Div", [FLOATS, np.zeros(4, F)], {}),
    ("Mod", [INTS, TWOS], {}),
    ("Mod", [INTS, TWOS], {"fmod": 1}),
    ("Mod", [FLOATS, UPS], {"fmod": 1}),
    ("Min", [INTS, TWOS], {}),
    ("Min", [ints(9), INTS.reshape(4, 1)], {}),
    ("Max", [INTS, TWOS, ints(1)], {}),
    ("Max", [INTS], {}),
    ("Neg", [INTS], {}),
    ("Abs", [INTS], {}),
    ("Floor", [FLOATS], {}),
    ("Ceil", [FLOATS], {}),
    ("Sqrt", [FLOATS[2:]], {}),
    ("Not", [RUNS], {}),
    ("Equal", [INTS, TWOS], {}),
    ("Less", [INTS, TWOS], {}),
    ("Greater", [INTS, TWOS], {}),
    ("LessOrEqual", [INTS, ints(4)], {}),
    ("GreaterOrEqual", [INTS, ints(4)], {}),
    ("And", [RUNS, ~RUNS], {}),
    ("Or", [RUNS, ~RUNS], {}),
    ("Xor", [RUNS, np.array([True, True, False, False])], {}),
    ("Where", [RUNS, INTS, TWOS], {}),
    ("IsNaN", [SPECIAL], {}),
    ("IsInf", [SPECIAL], {}),
    ("IsInf", [SPECIAL], {"detect_negative": 0}),
    ("IsInf", [SPECIAL], {"detect_positive": 0}),
    ("CastLike", [FLOATS, ints(1, 2)], {}),
    ("ArgMax", [ints(3, 9, 9, 1)], {}),
    ("ArgMin", [GRID], {"axis": -1, "keepdims": 0}),
    ("Cast", [FLOATS], {"to": 7}),  # towards zero
    ("Cast", [ints(2**24 + 1)], {"to": 1}),
    ("Cast", [INTS], {"to": 9}),
    ("Identity", [INTS], {}),
    ("Concat", [INTS, TWOS], {"axis": 0}),
    ("Concat", [INTS, NONE], {"axis": -1}),
    ("Gather", [INTS, ints(3, -1)], {}),
    ("Gather", [GRID, np.array(-1, np.int64)], {"axis": 1}),
    ("Gather", [INTS, NONE], {}),
    ("Slice", [INTS, ints(1), ints(99)], {}),
    ("Slice", [INTS, ints(0), ints(4), ints(0), ints(2)], {}),
    ("Slice", [GRID, ints(-2), ints(2**62), ints(-1)], {}),
    ("Slice", [GRID, ints(1, 0), ints(2, 2)], {}),
    ("Slice", [INTS, ints(0), ints(2), None, ints(1)], {}),
    ("Slice", [NONE, ints(0), ints(2)], {}),
    ("Unsqueeze", [INTS, ints(0, 2)], {}),
    ("Unsqueeze", [INTS, ints(-1)], {}),
    ("Squeeze", [INTS.reshape(1, 4, 1), ints(0)], {}),
    ("Squeeze", [INTS.reshape(1, 4, 1)], {}),
    ("Squeeze", [INTS.reshape(1, 4, 1), NONE], {}),
    ("Reshape", [INTS, ints(-1, 2)], {}),
    ("Reshape", [GRID, ints(0, -1)], {}),
    ("Reshape", [NONE, ints(0, 3)], {"allowzero": 1}),
    ("Transpose", [GRID], {}),
    ("Transpose", [GRID], {"perm": [0, 1]}),
    ("Expand", [np.array([[3]], np.int64), ints(2, 3)], {}),
    ("Expand", [INTS, ints(2, 1)], {}),
    ("ConstantOfShape", [ints(2, 3)], {}),
    ("ConstantOfShape", [ints(2)], {"value": onnx.numpy_helper.from_array(ints(-7))}),
    ("ConstantOfShape", [NONE], {}),
    ("Range", [np.array(n, np.int64) for n in (2, 9, 3)], {}),
    ("Range", [np.array(n, np.int64) for n in (9, 2, -3)], {}),
    ("ReduceProd", [INTS + 8], {"keepdims": 0}),
    ("ReduceSum", [GRID, ints(-1)], {}),
    ("ReduceSum", [GRID, NONE], {}),
    ("ReduceSum", [GRID, NONE], {"noop_with_empty_axes": 1}),
    ("ReduceMin", [INTS], {}),
    ("ReduceMax", [GRID], {"axes": [0], "keepdims": 0}),
]


def as_it_runs(operator: str, given: list[Any], attributes: dict[str, Any]) -> Any:
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(given)]
    feeds = {name: array for name, array in zip(names, given, strict=True) if name}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return ort.InferenceSession(proto.SerializeToString()).run(None, feeds)[0]


@pytest.mark.parametrize(("operator", "given", "attributes"), VALID)
def test_equal_to_onnx_runtime(operator: str, given: list[Any], attributes: dict[str, Any]) -> None:
    expected = as_it_runs(operator, given, attributes)

    found = compute(operator, attributes, given)

    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)


def test_every_operator_of_the_table_is_compared() -> None:
    assert {operator for operator, _, _ in VALID} >= MOVEMENT | ELEMENTWISE


def test_slices_with_all_bounds() -> None:
    edges = [-(2**62), -9, -5, -4, -1, 0, 2, 3, 4, 9, 2**62]
    numbers = itertools.product(edges, edges, [1, 2, -1, -2])
    cases = [(start, end, step) for start, end, step in numbers if abs(start) < 2**62]
    nodes, constants = [], []
    for index, case in enumerate(cases):
        names = [f"{index}_{place}" for place in range(3)]
        constants += [
            onnx.numpy_helper.from_array(ints(n), name) for n, name in zip(case, names, strict=True)
        ]
        nodes.append(helper.make_node("Slice", ["x", names[0], names[1], "axis", names[2]], [f"y{index}"]))
    constants.append(onnx.numpy_helper.from_array(ints(0), "axis"))
    outputs = [helper.make_tensor_value_info(node.output[0], 7, None) for node in nodes]
    inputs = [helper.make_tensor_value_info("x", 7, [4])]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    expected = ort.InferenceSession(proto.SerializeToString()).run(None, {"x": INTS})

    for (start, end, step), wanted in zip(cases, expected, strict=True):
        found = compute("Slice", {}, [INTS, ints(start), ints(end), ints(0), ints(step)])
        np.testing.assert_array_equal(found, wanted, str((start, end, step)))


def test_slice_and_squeeze_by_attributes() -> None:
    np.testing.assert_array_equal(
        compute("Slice", {"starts": [1], "ends": [-1], "axes": [1]}, [GRID]), GRID[:, 1:-1]
    )
    np.testing.assert_array_equal(compute("Slice", {"starts": [1], "ends": [2]}, [GRID]), GRID[1:2])
    assert compute("Squeeze", {"axes": [0]}, [INTS.reshape(1, 4)]).shape == (4,)  # type: ignore[union-attr]
    assert compute("Unsqueeze", {"axes": [0]}, [INTS]).shape == (1, 4)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("operator", "given", "attributes"),
    [
        ("Conv", [INTS], {}),
        ("Add", [INTS, INTS[:3]], {}),
        ("Div", [INTS, INTS[:3]], {}),
        ("Div", [INTS, INTS], {}),  # one divisor is 0
        ("Mod", [INTS, INTS], {}),
        ("Concat", [INTS, GRID], {"axis": 0}),
        ("Concat", [INTS, TWOS], {"axis": 1}),
        ("Concat", [INTS], {}),
        ("Gather", [INTS, ints(4)], {}),
        ("Gather", [INTS, ints(-5)], {}),
        ("Slice", [INTS, ints(0)], {}),
        ("Slice", [INTS, ints(0, 1), ints(2)], {}),
        ("Slice", [INTS, ints(0), ints(2), ints(1)], {}),
        ("Slice", [INTS, ints(0), ints(2), ints(0), ints(0)], {}),
        ("Squeeze", [INTS, ints(0)], {}),
        ("Unsqueeze", [INTS, ints(2)], {}),
        ("Reshape", [INTS, ints(3)], {}),
        ("Reshape", [INTS, ints(2, 2, 0)], {}),
        ("Reshape", [INTS, None], {}),
        ("Min", [INTS, None, INTS], {}),
        ("Transpose", [GRID], {"perm": [0, 2]}),
        ("Expand", [INTS, ints(3)], {}),
        ("ConstantOfShape", [ints(-1)], {}),
        ("ConstantOfShape", [ints(10**6, 10**6)], {}),
        ("Expand", [ints(1), ints(LARGEST + 1)], {}),
        ("Range", [np.array(n, np.int64) for n in (0, 9, 0)], {}),
        ("Range", [np.array(n, np.int64) for n in (0, 10**9, 1)], {}),
        ("ReduceMin", [NONE], {}),
        ("ReduceSum", [GRID, ints(2)], {}),
        ("Add", [np.zeros(LARGEST + 1), np.zeros(1)], {}),
    ],
)
def test_invalid_and_large_nodes_have_no_value(
    operator: str, given: list[Any], attributes: dict[str, Any]
) -> None:
    assert compute(operator, attributes, given) is None


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Expand", "Range"])
def test_a_node_without_inputs_has_no_value(operator: str) -> None:
    assert compute(operator, {}, []) is None


def test_graphs_and_references_to_a_functions_attributes_are_left_out() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=2, body=onnx.GraphProto())
    node.attribute.append(onnx.AttributeProto(name="mode", ref_attr_name="outer"))

    assert attributes_of(node) == {"axis": 2}
