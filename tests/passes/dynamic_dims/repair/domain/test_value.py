"""What is known of one value."""

from __future__ import annotations

import numpy as np
import onnx
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, Value
from onnx_migrate.passes.dynamic_dims.repair.domain.value import dtype_of, join, known_value

ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)
N = Dim(ASSIGNMENTS.sizes["N"])


def test_the_type_has_the_sizes_of_the_assignment() -> None:
    value = Value(onnx.TensorProto.FLOAT, (N, None, ASSIGNMENTS.fixed(4)))

    dims = value.type_in(1).tensor_type.shape.dim

    assert [dim.dim_value for dim in dims] == [N.sizes[1], 0, 4]
    assert not dims[1].HasField("dim_value")


def test_elements_are_constant_only_if_all_assignments_agree() -> None:
    array = np.array([2, 3], np.int32)
    known = known_value(array, ASSIGNMENTS)
    varying = Value(known.dtype, known.dims, (array, array, array, array + 1))

    assert dtype_of(array) == onnx.TensorProto.INT32
    np.testing.assert_array_equal(known.constant(), array)
    assert varying.constant() is None


def test_a_join_knows_what_both_sides_agree_on() -> None:
    a = Value(1, (N, ASSIGNMENTS.fixed(4)))
    b = Value(1, (N, ASSIGNMENTS.fixed(5)))

    assert join(a, b).dims == (N, None)
    assert join(a, Value(1, (N,))).dims is None
    assert join(Value(), a).dtype == 1
