"""Shape arithmetic gives what ONNX Runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from onnx_migrate.analysis.shape_arithmetic import LARGEST, compute

INTS = np.array([7, -7, 4, 0], np.int64)
TWOS = np.array([2, 2, -3, 5], np.int64)


@pytest.mark.parametrize(
    ("operator", "given", "attributes"),
    [
        ("Div", [INTS, TWOS], {}),
        ("Mod", [INTS, TWOS], {}),
        ("Mod", [INTS, TWOS], {"fmod": 1}),
        ("Sub", [INTS, TWOS], {}),
        ("Min", [INTS, TWOS], {}),
        ("Max", [INTS, TWOS, np.array([1], np.int64)], {}),
        ("Floor", [np.array([2.5, -2.5], np.float32)], {}),
        ("Cast", [np.array([2.5, -2.5], np.float32)], {"to": 7}),
        ("Concat", [INTS, TWOS], {"axis": 0}),
        ("Gather", [INTS, np.array([3, -1], np.int64)], {}),
        ("Slice", [INTS, np.array([1], np.int64), np.array([99], np.int64)], {}),
        ("Slice", [INTS] + [np.array([n], np.int64) for n in (0, 4, 0, 2)], {}),
        ("Unsqueeze", [INTS, np.array([0, 2], np.int64)], {}),
        ("Squeeze", [INTS.reshape(1, 4, 1), np.array([0], np.int64)], {}),
        ("Reshape", [INTS, np.array([-1, 2], np.int64)], {}),
        ("Transpose", [INTS.reshape(2, 2)], {}),
        ("ConstantOfShape", [np.array([2, 3], np.int64)], {}),
        ("Expand", [np.array([[3]], np.int64), np.array([2, 3], np.int64)], {}),
        ("Range", [np.array(n, np.int64) for n in (2, 9, 3)], {}),
        ("Where", [INTS > 0, INTS, TWOS], {}),
        ("ReduceProd", [INTS + 8], {"keepdims": 0}),
        ("Equal", [INTS, TWOS], {}),
    ],
)
def test_as_it_runs(operator: str, given: list[Any], attributes: dict[str, Any]) -> None:
    names = [f"x{index}" for index in range(len(given))]
    kinds = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in given]
    inputs = [
        helper.make_tensor_value_info(name, kind, array.shape)
        for name, kind, array in zip(names, kinds, given, strict=True)
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    expected = ort.InferenceSession(proto.SerializeToString()).run(
        None, dict(zip(names, given, strict=True))
    )[0]

    found = compute(operator, attributes, given)

    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_what_is_no_shape_is_not_computed() -> None:
    assert compute("Conv", {}, [INTS]) is None
    assert compute("Add", {}, [np.zeros(LARGEST + 1), np.zeros(1)]) is None
    assert compute("ConstantOfShape", {}, [np.array([10**6, 10**6])]) is None
    assert compute("Div", {}, [INTS, INTS[:3]]) is None


def test_a_slice_backwards() -> None:
    """As PyTorch writes the pads of a Pad: pairs, from the last axis on."""
    pairs = np.arange(8).reshape(4, 2)
    given = [np.array([number]) for number in (-1, -(2**63) + 1, 0, -1)]

    np.testing.assert_array_equal(compute("Slice", {}, [pairs, *given]), pairs[::-1])
    given[1] = np.array([1])
    np.testing.assert_array_equal(compute("Slice", {}, [pairs, *given]), pairs[:1:-1])
