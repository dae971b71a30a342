"""Tensors as text, and which are the same."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.files import load
from onnx_migrate.report.tensor_text import same_tensor, tensor_text, type_text
from tests.harness import model

TEXT = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


def test_small_tensors_show_their_values_and_large_ones_a_digest() -> None:
    assert tensor_text(helper.make_tensor("k", TensorProto.INT64, [2], [3, 4]), None) == "int64[2] [3, 4]"
    assert tensor_text(numpy_helper.from_array(np.zeros(9, np.float32)), None).startswith("float[9] #")
    assert tensor_text(helper.make_tensor("k", TensorProto.STRING, [1], [b"a"]), None).startswith(
        "string[1] #"
    )
    assert type_text(TensorProto.BFLOAT16, ()) == "bfloat16[]"


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "bool", "float16", "int32"])
def test_the_field_does_not_matter(dtype: str) -> None:
    values = np.arange(20).astype(dtype)
    raw = numpy_helper.from_array(values, "a")
    field = helper.make_tensor("b", raw.data_type, [20], values.tolist())

    assert same_tensor(raw, field, (None, None))
    assert tensor_text(raw, None) == tensor_text(field, None)
    values[3] += 1
    assert dtype == "bool" or not same_tensor(raw, numpy_helper.from_array(values, "a"), (None, None))


def test_shape_and_type_count() -> None:
    zeros = numpy_helper.from_array(np.zeros((2, 3), np.float32))

    assert not same_tensor(zeros, numpy_helper.from_array(np.zeros((3, 2), np.float32)), (None, None))
    assert not same_tensor(zeros, numpy_helper.from_array(np.zeros((2, 3), np.int32)), (None, None))


def test_large_weights_are_read_only_with_what_finds_them() -> None:
    found = []
    for last in (1.0, 2.0):
        source = model(TEXT)
        values = np.arange(5000, dtype=np.float32)
        values[-1] = last
        source.graph.initializer.append(numpy_helper.from_array(values, "big"))
        found.append(load(source))
    tensors = [item.proto.graph.initializer[0] for item in found]

    assert same_tensor(tensors[0], tensors[1], (None, None))
    assert not same_tensor(tensors[0], tensors[1], (found[0].weights, found[1].weights))
    assert tensor_text(tensors[0], None) == "float[5000]"
    assert tensor_text(tensors[0], found[0].weights).startswith("float[5000] #")
