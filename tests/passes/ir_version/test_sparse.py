"""Sparse initializers as dense ones."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnx_migrate
from onnx_migrate.errors import CannotMigrate
from tests.harness import model

TEXT = "10 (float[1] x) => (float[N] y) { y = Add (x, w) }"


def sparse(dims: list[int], places: np.ndarray, values: np.ndarray) -> onnx.ModelProto:
    source = model(TEXT)
    source.graph.sparse_initializer.append(
        helper.make_sparse_tensor(
            numpy_helper.from_array(values, "w"), numpy_helper.from_array(places.astype(np.int64), "i"), dims
        )
    )
    return source


def dense(source: onnx.ModelProto) -> np.ndarray:
    result = onnx_migrate.migrate(source, ir_version=5, verify=False).model
    (tensor,) = result.graph.initializer
    assert tensor.name == "w"
    assert not result.graph.sparse_initializer
    return numpy_helper.to_array(tensor)


@pytest.mark.parametrize("dims", [[7], [2, 4], [2, 2, 3]])
def test_positions_in_the_flat_tensor(dims: list[int]) -> None:
    found = dense(sparse(dims, np.array([1, 6]), np.array([2.0, 3.0], np.float32)))
    expected = np.zeros(dims, np.float32)
    expected.reshape(-1)[[1, 6]] = 2, 3
    np.testing.assert_array_equal(found, expected)


def test_coordinates_of_a_tensor_that_becomes_large() -> None:
    rng = np.random.default_rng(0)
    expected = np.where(rng.random((60, 70)) < 0.5, rng.standard_normal((60, 70)), 0).astype(np.float32)
    places = np.argwhere(expected)
    found = dense(sparse([60, 70], places, expected[expected != 0]))
    np.testing.assert_array_equal(found, expected)


def test_no_value_at_all() -> None:
    np.testing.assert_array_equal(dense(sparse([3], np.zeros(0), np.zeros(0, np.float32))), np.zeros(3))


def test_one_that_is_too_large_is_refused() -> None:
    source = sparse([1 << 20, 1 << 10], np.array([5]), np.array([1.0], np.float32))
    with pytest.raises(CannotMigrate, match=r"'w': .*too large") as caught:
        onnx_migrate.migrate(source, ir_version=5, verify=False)
    assert caught.value.code == "no-such-ir"
    assert source.graph.sparse_initializer[0].values.data_type == TensorProto.FLOAT
