"""Abstract values, and those of inputs, initializers and constants."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, Value, fixed
from onnx_migrate.passes.dynamic_dims.repair.domain.values import (
    dtype_of,
    join,
    known_value,
    value_of_body_input,
    value_of_input,
    value_of_tensor,
)

from onnx_migrate.facts.shape_arithmetic import LARGEST
from onnx_migrate.model.weights import Weights

ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)
N = Dim(ASSIGNMENTS.sizes["N"])


def test_the_type_has_the_sizes_of_the_assignment() -> None:
    value = Value(onnx.TensorProto.FLOAT, (N, None, fixed(4)))

    dims = value.type_in(1).tensor_type.shape.dim

    assert [dim.dim_value for dim in dims] == [N.sizes[1], 0, 4]
    assert not dims[1].HasField("dim_value")


def test_elements_are_constant_only_if_all_assignments_agree() -> None:
    array = np.array([2, 3], np.int32)
    known = known_value(array)
    varying = Value(known.dtype, known.dims, (array, array, array, array + 1))

    assert dtype_of(array) == onnx.TensorProto.INT32
    np.testing.assert_array_equal(known.constant(), array)
    assert varying.constant() is None


def test_a_join_knows_what_both_sides_agree_on() -> None:
    a = Value(1, (N, fixed(4)))
    b = Value(1, (N, fixed(5)))

    assert join(a, b).dims == (N, None)
    assert join(a, Value(1, (N,))).dims is None
    assert join(Value(), a).dtype == 1


def test_a_dim_with_an_unassigned_symbol_is_unknown() -> None:
    declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "other"])

    assert value_of_input(declared, ASSIGNMENTS).dims == (
        Dim(ASSIGNMENTS.sizes["N"]),
        fixed(3),
        None,
    )


def test_declared_dims_of_a_subgraph_input_are_not_trusted() -> None:
    declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])

    value = value_of_body_input(declared)

    assert (value.dtype, value.dims) == (TensorProto.FLOAT, None)


@pytest.mark.parametrize(("size", "known"), [(LARGEST, True), (LARGEST + 1, False)])
def test_elements_of_large_initializers_are_not_read(size: int, known: bool) -> None:
    tensor = numpy_helper.from_array(np.arange(size), "k")

    value = value_of_tensor(tensor, Weights())

    assert value.dims == (fixed(size),)
    assert (value.constant() is not None) is known
