"""Values of inputs, initializers and constants."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim
from onnx_migrate.passes.dynamic_dims.repair.domain.initial_values import (
    value_of_body_input,
    value_of_input,
    value_of_tensor,
)

from onnx_migrate.analysis.shape_arithmetic import LARGEST
from onnx_migrate.model.weights import Weights

ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)


def test_a_dim_with_an_unassigned_symbol_is_unknown() -> None:
    declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "other"])

    assert value_of_input(declared, ASSIGNMENTS).dims == (
        Dim(ASSIGNMENTS.sizes["N"]),
        ASSIGNMENTS.fixed(3),
        None,
    )


def test_declared_dims_of_a_subgraph_input_are_not_trusted() -> None:
    declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3])

    value = value_of_body_input(declared)

    assert (value.dtype, value.dims) == (TensorProto.FLOAT, None)


@pytest.mark.parametrize(("size", "known"), [(LARGEST, True), (LARGEST + 1, False)])
def test_elements_of_large_initializers_are_not_read(size: int, known: bool) -> None:
    tensor = numpy_helper.from_array(np.arange(size), "k")

    value = value_of_tensor(tensor, Weights(), ASSIGNMENTS)

    assert value.dims == (ASSIGNMENTS.fixed(size),)
    assert (value.constant() is not None) is known
