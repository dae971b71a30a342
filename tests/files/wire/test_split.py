"""A split model is its structure, with the offset and length of each large payload."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.files.wire.payload_references import split
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import INLINE_LIMIT
from tests.files.feature_models import FEATURES, model, plain, weight, with_one_tensor


def parts(proto: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, tuple[bytes, str, bytes]]]:
    """Return the structure, and for each location its payload, field and extra fields."""
    data = proto.SerializeToString()
    kept: dict[str, tuple[bytes, str, bytes]] = {}

    def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
        kept[str(len(kept))] = data[offset : offset + length], field, extra_fields
        return str(len(kept) - 1), 0

    return onnx.ModelProto.FromString(split(data, keep)), kept


@pytest.mark.parametrize("feature", ["plain", "nested", "sparse", "functions", "training", "everywhere"])
def test_the_payload_of_each_tensor_is_where_its_reference_says(feature: str) -> None:
    proto = FEATURES[feature]()
    structure, kept = parts(proto)
    for own, reference in zip(tensors(proto), tensors(structure), strict=True):
        location = next(entry.value for entry in reference.external_data if entry.key == "location")
        assert kept[location][:2] == (own.raw_data, "raw_data")
        assert reference.data_location == TensorProto.EXTERNAL
        assert (reference.name, reference.dims, reference.data_type) == (own.name, own.dims, own.data_type)


def test_a_single_large_payload_is_found_in_every_field() -> None:
    for proto in with_one_tensor():
        structure, kept = parts(proto)
        assert [payload for payload, _, _ in kept.values()] == [weight("w").raw_data]
        assert structure.ByteSize() < 1000


@pytest.mark.parametrize(("count", "references"), [(INLINE_LIMIT // 4, 0), (INLINE_LIMIT // 4 + 1, 1)])
def test_only_payloads_over_the_limit_are_left_out(count: int, references: int) -> None:
    proto = model([weight("w", count=count)])
    structure, kept = parts(proto)

    assert len(kept) == references
    assert (structure == proto) == (references == 0)


def test_a_field_other_than_raw_data_is_named() -> None:
    for name, data_type in (("float_data", TensorProto.COMPLEX64), ("double_data", TensorProto.DOUBLE)):
        tensor = TensorProto(name="w", dims=[3000], data_type=data_type)
        getattr(tensor, name).extend([0.5] * 3000)
        _, kept = parts(model([tensor]))
        assert [(field, len(payload)) for payload, field, _ in kept.values()] == [
            (name, 3000 * (4 if name == "float_data" else 8))
        ]


def test_entries_that_stand_beside_the_data_are_kept_as_extra_fields() -> None:
    tensor = weight("w")
    tensor.external_data.add(key="location", value="stale.bin")
    tensor.data_location = TensorProto.DEFAULT
    _, kept = parts(model([tensor]))
    ((_, _, extra_fields),) = kept.values()
    extra = TensorProto.FromString(extra_fields)

    assert (extra.external_data, extra.HasField("data_location")) == (tensor.external_data, True)
    assert {field.name for field, _ in extra.ListFields()} == {"external_data", "data_location"}


def test_a_tensor_with_two_data_fields_stays() -> None:
    for name in sorted(DATA_FIELDS.keys() - {"raw_data"}):
        proto = plain()
        value = [b"x"] if name == "string_data" else [1]
        getattr(proto.graph.initializer[0], name).extend(value)
        structure, kept = parts(proto)
        assert len(kept) == 1, name
        assert structure.graph.initializer[0] == proto.graph.initializer[0]
