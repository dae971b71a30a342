"""All tensors of a model are found; sizes and data fields are those that onnx writes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from onnx_migrate.model.payloads import byte_size, data_field, has_type, packed_bytes
from onnx_migrate.model.tensors import numbers, tensors
from onnx_migrate.model.weights import location_of, mark_external
from tests.support.skips import Elsewhere, skip


def tensor(name: str) -> TensorProto:
    return numpy_helper.from_array(np.zeros(1, np.float32), name)


def sparse(name: str) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(tensor(name), numpy_helper.from_array(np.zeros(1, np.int64), "i"), [1])


def test_tensors_of_every_place_are_found() -> None:
    inner = helper.make_graph([], "inner", [], [], [tensor("in a branch")])
    node = helper.make_node("Custom", [], ["y"], domain="com.acme")
    for name, value in (
        ("t", tensor("t")),
        ("ts", [tensor("t1"), tensor("t2")]),
        ("g", inner),
        ("gs", [inner]),
    ):
        node.attribute.append(helper.make_attribute(name, value))
    node.attribute.append(helper.make_attribute("sparse", sparse("sparse attribute")))
    node.attribute.append(helper.make_attribute("number", 1))
    untyped = helper.make_attribute("untyped", tensor("without a type"))
    untyped.type = AttributeProto.UNDEFINED  # as in IR version 1
    node.attribute.append(untyped)
    graph = helper.make_graph([node], "g", [], [], [tensor("w")], sparse_initializer=[sparse("s")])
    function = helper.make_function("f", "F", [], [], [node], [])
    model = helper.make_model(graph, functions=[function])
    model.training_info.add().algorithm.initializer.append(tensor("trained"))

    found = [item.name for item in tensors(model) if item.name != "i"]

    of_node = ["t", "t1", "t2", "in a branch", "in a branch", "sparse attribute", "without a type"]
    assert sorted(found) == sorted([*of_node, *of_node, "w", "s", "trained"])
    assert sum(item.name == "i" for item in tensors(model)) == 3


@pytest.mark.parametrize("data_type", sorted(set(TensorProto.DataType.values()) - {0, TensorProto.STRING}))
def test_the_size_of_raw_data_is_that_of_onnx(data_type: int) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    made = numpy_helper.from_array(np.zeros((3, 5), dtype), "w")
    if made.data_type != data_type:
        skip("an older onnx represents this type by another one in NumPy", Elsewhere.NEWEST)

    assert byte_size([3, 5], data_type) == len(made.raw_data)
    assert byte_size([], data_type) == len(numpy_helper.from_array(np.zeros((), dtype)).raw_data)


def test_no_size_without_a_known_type_and_dims() -> None:
    assert byte_size([2], TensorProto.STRING) is None
    assert byte_size([-1], TensorProto.FLOAT) is None
    assert byte_size([0, 7], TensorProto.FLOAT) == 0


@pytest.mark.parametrize(
    ("data_type", "field"),
    [
        (TensorProto.FLOAT, "float_data"),
        (TensorProto.DOUBLE, "double_data"),
        (TensorProto.COMPLEX64, "float_data"),
        (TensorProto.INT64, None),
    ],
)
def test_packed_fields_are_the_raw_data_of_floats_alone(data_type: int, field: str | None) -> None:
    made = helper.make_tensor("w", data_type, [2], [1, 2])

    assert data_field(made) == field
    if field is not None:
        assert has_type(field, data_type)
        assert not has_type(field, TensorProto.INT64)
        assert (
            packed_bytes(made, field)
            == np.array([1, 2], helper.tensor_dtype_to_np_dtype(data_type)).tobytes()
        )


def test_packed_bytes_keep_signalling_nans() -> None:
    bits = (
        np.array([0x7F800001, 0xFFC00000, 0x3F800000], "<u4").tobytes() * 20
    )  # whose length takes two bytes
    made = TensorProto(data_type=TensorProto.FLOAT, dims=[60], name="w" * 200, doc_string="after the data")
    made.MergeFromString(
        b"\x22" + bytes([len(bits) % 128 + 128, len(bits) // 128]) + bits
    )  # field 4, float_data, packed

    assert packed_bytes(made, "float_data") == bits


def test_a_reference_is_one_that_onnx_reads() -> None:
    made = TensorProto()
    mark_external(made, "w.bin", 8, 16)

    info = onnx.external_data_helper.ExternalDataInfo(made)
    assert made.data_location == TensorProto.EXTERNAL
    assert (info.location, info.offset, info.length) == ("w.bin", 8, 16)
    assert location_of(made) == "w.bin"
    assert location_of(TensorProto()) == ""


@pytest.mark.parametrize(
    "name", ["BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"]
)
def test_numbers_of_types_that_numpy_lacks(name: str) -> None:
    """Every onnx gives them otherwise: as bits before 1.19, then as types of ml_dtypes."""
    kind = getattr(TensorProto, name, None)
    if kind is None:
        skip(f"onnx {onnx.__version__} has no {name}", Elsewhere.NEWEST)
    given = [1.5, -2.0, 0.0, 4.0, -0.5]
    found = numbers(numpy_helper.to_array(helper.make_tensor("t", kind, [5], given)))

    assert found.astype(np.float32).tolist() == given


def test_other_numbers_are_as_they_were() -> None:
    for array in (np.array([1, -2], np.int8), np.array(1.5), np.array(["a"], object)):
        assert numbers(array) is array
