"""The forms in which a tensor may hold its data; what is broken is in tests/support/bad_models.py."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.model.validity.fault import Problem
from onnx_migrate.model.validity.tensors import (
    ELEMENT_TYPES,
    dims_fault,
    dtype_fault,
    sparse_fault,
    tensor_fault,
    unordered,
)
from tests.support.skips import Elsewhere, skip


def code(found: Problem | None) -> str:
    return found.code if found else ""


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES))
@pytest.mark.parametrize("size", [0, 1, 5])
def test_what_onnx_writes_is_valid(dtype: int, size: int) -> None:
    values = [b"a"] * size if dtype == TensorProto.STRING else [1] * size
    try:
        tensor = helper.make_tensor("t", dtype, [size], values)
    except (TypeError, ValueError, KeyError, AttributeError):
        skip("this onnx cannot write the type", Elsewhere.NEWEST)

    assert tensor_fault(tensor) is None


def test_raw_data_of_every_shape() -> None:
    for shape in ((), (0,), (3,), (2, 0, 4), (2, 3)):
        tensor = numpy_helper.from_array(np.zeros(shape, np.float16))
        assert tensor_fault(tensor) is None
        tensor.raw_data += b"\0"
        assert code(tensor_fault(tensor)) == "data-size"


def test_external_data_counts_by_its_length() -> None:
    tensor = TensorProto(data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)

    assert tensor_fault(tensor) is None
    assert tensor_fault(tensor, 8) is None
    assert code(tensor_fault(tensor, 4)) == "data-size"
    tensor.data_type = TensorProto.STRING
    assert code(tensor_fault(tensor, 8)) == "string-in-raw-data"


def test_dims_and_types() -> None:
    assert dims_fault([]) is None
    assert dims_fault([0, 2**40]) is None
    assert dims_fault([2**31, 2**31]) is not None
    assert dtype_fault(TensorProto.FLOAT) is None
    assert dtype_fault(12345) is not None


def test_sparse_tensors_with_flat_and_with_full_indices() -> None:
    values = numpy_helper.from_array(np.ones(2, np.float32), "s")
    for indices in (np.array([0, 5]), np.array([[0, 0], [1, 2]])):
        sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices), [2, 3])
        assert sparse_fault(sparse) is None
    fault = sparse_fault(
        onnx.SparseTensorProto(
            values=values, indices=numpy_helper.from_array(np.ones((2, 3), np.int64)), dims=[2, 3]
        )
    )
    assert fault is not None
    assert fault.code == "bad-sparse"


@pytest.mark.parametrize(
    ("indices", "dims", "ordered"),
    [([0, 3], [4], True), ([3, 0], [4], False), ([[0, 1], [1, 0]], [2, 2], True), ([[1, 0], [0, 1]], [2, 2], False),
     ([[0, 2], [1, 0]], [2, 3], True)],
)  # fmt: skip
def test_the_order_of_sparse_indices_is_no_fault(
    indices: list[object], dims: list[int], ordered: bool
) -> None:
    values = numpy_helper.from_array(np.ones(len(indices), np.float32), "w")
    places = numpy_helper.from_array(np.array(indices, np.int64), "i")
    tensor = helper.make_sparse_tensor(values, places, dims)

    assert sparse_fault(tensor) is None
    assert unordered(tensor) is not ordered


def test_indices_in_a_file_that_is_not_known_are_not_judged() -> None:
    tensor = helper.make_sparse_tensor(
        numpy_helper.from_array(np.ones(1, np.float32), "w"), numpy_helper.from_array(np.array([9]), "i"), [4]
    )
    assert sparse_fault(tensor) is not None
    assert sparse_fault(tensor, None, lambda tensor: None) is None


def test_raw_data_that_is_set_and_empty_is_a_second_form() -> None:
    tensor = helper.make_tensor("t", TensorProto.INT64, [1], [3])
    tensor.raw_data = b""
    assert code(tensor_fault(tensor)) == "two-data-forms"
    assert tensor_fault(TensorProto(data_type=TensorProto.INT64, dims=[0], raw_data=b"")) is None
