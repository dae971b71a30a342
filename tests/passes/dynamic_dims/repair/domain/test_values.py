"""Values at several sizes, their dims, and what is inferred of nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_migrate.passes.dynamic_dims.repair.domain import (
    Array,
    Assignments,
    Dim,
    SampledValue,
    fixed,
    merged_axis,
)
from onnx_migrate.passes.dynamic_dims.repair.domain.node_inference import ShapeConflict, infer
from onnx_migrate.passes.dynamic_dims.repair.domain.values import (
    dtype_of,
    join,
    known_value,
    value_of_body_input,
    value_of_input,
    value_of_sparse,
    value_of_tensor,
)

from onnx_migrate.facts.shape_arithmetic import LARGEST
from onnx_migrate.model.weights import Weights

ASSIGNMENTS = Assignments.of({"N": 1}, {"N"}, 64)
N = Dim(ASSIGNMENTS.sizes["N"])


def test_the_type_has_the_sizes_of_the_assignment() -> None:
    value = SampledValue(onnx.TensorProto.FLOAT, (N, None, fixed(4)))

    dims = value.type_in(1).tensor_type.shape.dim

    assert [dim.dim_value for dim in dims] == [N.sizes[1], 0, 4]
    assert not dims[1].HasField("dim_value")


def test_elements_are_constant_only_if_all_assignments_agree() -> None:
    array = np.array([2, 3], np.int32)
    known = known_value(array)
    varying = SampledValue(known.dtype, known.dims, (array, array, array, array + 1))

    assert dtype_of(array) == onnx.TensorProto.INT32
    np.testing.assert_array_equal(known.constant(), array)
    assert varying.constant() is None


def test_a_join_knows_what_both_sides_agree_on() -> None:
    a = SampledValue(1, (N, fixed(4)))
    b = SampledValue(1, (N, fixed(5)))

    assert join(a, b).dims == (N, None)
    assert join(a, SampledValue(1, (N,))).dims is None
    assert join(SampledValue(), a).dtype == 1


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


def test_a_sparse_initializer_has_a_shape_and_no_elements() -> None:
    places = numpy_helper.from_array(np.array([1, 5]))
    tensor = helper.make_sparse_tensor(numpy_helper.from_array(np.float32([2, 3]), "k"), places, [2, 3])

    assert value_of_sparse(tensor) == SampledValue(TensorProto.FLOAT, (fixed(2), fixed(3)))


def test_no_two_symbols_have_one_size() -> None:
    assignments = Assignments.of({"N": 1, "M": 1, "H": 64, "W": 64, "K": 5}, {"N", "M", "K"}, 64)

    for assignment in (1, 2):
        assert len({sizes[assignment] for sizes in assignments.sizes.values()}) == 5
    assert {name for name, sizes in assignments.sizes.items() if sizes[3] != sizes[0]} == {"N", "M", "K"}
    assert all(sizes[assignment] != sizes[0] for sizes in assignments.sizes.values() for assignment in (1, 2))


def test_a_merged_axis_holds_its_factors_in_order() -> None:
    n, fixed = Dim((1, 3, 5, 7)), Dim((6, 6, 6, 6))

    assert merged_axis([n, fixed]).sizes == (6, 18, 30, 42)
    assert merged_axis([n, fixed]).flat_factors() == [n, fixed]
    assert merged_axis([fixed]) is fixed
    assert not merged_axis([fixed, fixed]).factors


@pytest.mark.parametrize(
    ("length", "text", "symbols"),
    [
        (lambda n, h: h, "H", ["H"]),
        (lambda n, h: 5, "5", []),
        (lambda n, h: h // 2, "≈H/2", ["H"]),
        (lambda n, h: 3 * h, "3 × H", ["H"]),
        (lambda n, h: h + 1, "H + 1", ["H"]),
        (lambda n, h: h * h, "144, which changes with H and W", ["H", "W"]),
        (lambda n, h: n * n + 1, "2, which changes with N and H and W", ["N", "H", "W"]),
    ],
)
def test_lengths_as_the_report_shows_them(
    length: Callable[[int, int], int], text: str, symbols: list[str]
) -> None:
    assignments = Assignments.of({"N": 1, "H": 12, "W": 20}, {"N"}, 64)
    dim = Dim(tuple(map(length, assignments.sizes["N"], assignments.sizes["H"])))

    assert assignments.text(dim) == text
    assert assignments.symbols_in(dim) == symbols


def test_a_merged_axis_is_shown_as_a_product() -> None:
    assignments = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
    n, h = (Dim(assignments.sizes[symbol]) for symbol in "NH")
    longer = Dim(tuple(size + 1 for size in h.sizes))

    assert assignments.text(merged_axis([n, longer])) == "N × (H + 1)"


INFERENCE_ASSIGNMENTS = Assignments.of({"N": 1, "W": 12}, {"N"}, 64)
INFERENCE_N, W = Dim(INFERENCE_ASSIGNMENTS.sizes["N"]), Dim(INFERENCE_ASSIGNMENTS.sizes["W"])


def infer_one(
    operator: str, *given: SampledValue, outputs: int = 1, **attributes: object
) -> list[SampledValue]:
    names = [f"x{index}" for index in range(len(given))]
    node = helper.make_node(operator, names, [f"y{index}" for index in range(outputs)], **attributes)
    return infer(node, given, {"": 17}, 8)


def test_a_node_that_is_invalid_at_other_sizes_only_is_a_conflict() -> None:
    with pytest.raises(ShapeConflict):
        infer_one("Add", SampledValue(TensorProto.FLOAT, (W,)), SampledValue(TensorProto.FLOAT, (fixed(12),)))
    assert (
        infer_one("Add", SampledValue(TensorProto.FLOAT, (W,)), SampledValue(TensorProto.FLOAT, (fixed(5),)))[
            0
        ].dims
        is None
    )


def test_outputs_of_an_operator_without_schema_are_unknown() -> None:
    node = helper.make_node("Odd", ["x"], ["y"], domain="com.acme")

    assert (
        infer(node, [SampledValue(TensorProto.FLOAT, (INFERENCE_N,))], {"": 17, "com.acme": 1}, 8)[0].dims
        is None
    )


def test_a_merged_axis_keeps_its_factors_through_a_node() -> None:
    heads = merged_axis([INFERENCE_N, fixed(2)])

    (y,) = infer_one("Relu", SampledValue(TensorProto.FLOAT, (heads, W)))

    assert y.known is not None
    assert y.known[0].flat_factors() == [INFERENCE_N, fixed(2)]


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("operator", ["LessOrEqual", "GreaterOrEqual"])
def test_operators_that_onnx_does_not_infer_alone(operator: str, opset: int) -> None:
    node = helper.make_node(operator, ["a", "b"], ["y"])
    wide, narrow = (
        SampledValue(TensorProto.FLOAT, (INFERENCE_N, W)),
        SampledValue(TensorProto.FLOAT, (fixed(12),)),
    )

    (y,) = infer(node, [wide, wide], {"": opset}, 8)

    assert (y.dtype, y.dims) == (TensorProto.BOOL, (INFERENCE_N, W))
    with pytest.raises(ShapeConflict):
        infer(node, [wide, narrow], {"": opset}, 8)


@pytest.mark.parametrize(
    ("operator", "opset"), [("GroupNormalization", 21), ("MeanVarianceNormalization", 13)]
)
def test_operators_that_are_functions_without_inference(operator: str, opset: int) -> None:
    inputs = ["x", "s", "b"] if operator == "GroupNormalization" else ["x"]
    node = helper.make_node(operator, inputs, ["y"], **({"num_groups": 2} if len(inputs) > 1 else {}))
    channels = SampledValue(TensorProto.FLOAT, (fixed(4),))
    x = SampledValue(TensorProto.FLOAT, (INFERENCE_N, fixed(4), W, W))

    (y,) = infer(node, [x, channels, channels][: len(inputs)], {"": opset}, 8)

    assert (y.dtype, y.dims) == (TensorProto.FLOAT, x.dims)


INFERENCE_N, W = Dim(INFERENCE_ASSIGNMENTS.sizes["N"]), Dim(INFERENCE_ASSIGNMENTS.sizes["W"])


def constant(array: Array) -> SampledValue:
    return known_value(array)


def outputs_of(
    operator: str, *inputs: SampledValue, outputs: int = 1, **attributes: object
) -> list[SampledValue]:
    names = [f"x{index}" for index in range(len(inputs))]
    node = helper.make_node(operator, names, [f"y{index}" for index in range(outputs)], **attributes)
    return infer(node, inputs, {"": 17}, 8)


def test_a_shape_is_known_under_each_assignment() -> None:
    x = SampledValue(TensorProto.FLOAT, (INFERENCE_N, fixed(3), W))

    (shape,) = outputs_of("Shape", x)
    (width,) = outputs_of("Gather", shape, constant(np.array(2)))

    assert width.data is not None
    assert [array.item() for array in width.data] == list(W.sizes)


def test_elements_of_a_split_are_those_of_its_parts() -> None:
    parts = outputs_of("Split", constant(np.arange(6)), constant(np.array([4, 2])), outputs=2)

    assert [part.data[1].tolist() if part.data else None for part in parts] == [[0, 1, 2, 3], [4, 5]]


def test_a_resize_has_the_length_that_runs() -> None:
    """In double precision 12 × float32(25 / 12) is 24.99…, which onnx rounds down to 24."""
    x = SampledValue(TensorProto.FLOAT, (fixed(1), fixed(1), W))
    scales = constant(np.array([1, 1, 25 / 12], np.float32))

    (y,) = outputs_of("Resize", x, constant(np.zeros(0, np.float32)), scales, mode="nearest")

    assert y.dims is not None
    assert y.dims[2] is not None
    assert y.dims[2].sizes[0] == 25


def test_an_expand_to_an_unknown_shape_keeps_axes_longer_than_one() -> None:
    shape = SampledValue(TensorProto.INT64, (fixed(3),))

    (y,) = outputs_of("Expand", SampledValue(TensorProto.FLOAT, (W, fixed(1))), shape)

    assert y.dims == (None, W, None)
