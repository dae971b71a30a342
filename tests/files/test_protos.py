"""Reads a Model from a ModelProto, without a copy of large payloads, and puts a Model with its weights into one ModelProto."""

from __future__ import annotations

import resource
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.files.protos import inline, structure_of
from onnx_migrate.model.payloads import TensorPayload
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import INLINE_LIMIT, Weights
from tests.files.feature_models import (
    FEATURES,
    UNKNOWN,
    model,
    plain,
    weight,
    with_external_data,
    with_one_tensor,
)


@pytest.mark.parametrize("feature", ["plain", "nested", "sparse", "functions", "training", "everywhere"])
def test_each_large_tensor_is_a_reference_wherever_it_is(feature: str) -> None:
    proto = FEATURES[feature]()
    before = proto.SerializeToString()
    weights = Weights()
    structure = structure_of(proto, weights)

    found = list(zip(tensors(proto), tensors(structure), strict=True))
    assert len(weights.memory) == len(found) > 0
    for own, reference in found:
        assert not reference.raw_data
        assert weights.payload(reference).read() == own.raw_data
    assert structure.ByteSize() < len(before) / 10
    assert proto.SerializeToString() == before


def test_a_single_large_tensor_is_found_in_every_field() -> None:
    count = 0
    for proto in with_one_tensor():
        weights = Weights()
        structure = structure_of(proto, weights)
        assert len(weights.memory) == 1
        assert structure.ByteSize() < 1000
        count += 1
    assert count > 30


def test_a_model_without_large_tensors_is_copied_with_its_unknown_fields() -> None:
    proto = model([weight("w", count=INLINE_LIMIT // 4)])
    proto.graph.initializer[0].MergeFromString(UNKNOWN)
    weights = Weights()

    assert structure_of(proto, weights) == proto
    assert not weights.memory
    assert structure_of(proto, weights).SerializeToString() == proto.SerializeToString()


def test_data_that_is_marked_external_but_still_there_is_taken() -> None:
    proto = model([weight("large"), TensorProto(name="small", dims=[1], data_type=1, raw_data=b"1234")])
    onnx.external_data_helper.convert_model_to_external_data(proto, location="none.bin", size_threshold=0)
    weights = Weights()
    large, small = structure_of(proto, weights).graph.initializer

    assert weights.payload(large).read() == weight("large").raw_data
    assert (small.raw_data, small.data_location) == (b"1234", TensorProto.DEFAULT)


def test_typed_fields_are_referred_to_by_their_field() -> None:
    proto = model(
        [TensorProto(name="w", dims=[3000], data_type=TensorProto.DOUBLE, double_data=[0.1] * 3000)]
    )
    weights = Weights()
    (reference,) = structure_of(proto, weights).graph.initializer
    payload = weights.payload(reference)

    assert isinstance(payload, TensorPayload)
    assert (payload.field, payload.length) == ("double_data", 24_000)
    assert not reference.double_data


@pytest.mark.long
def test_no_payload_is_copied() -> None:
    proto = model([weight(f"w{i}", i, 25_000_000) for i in range(2)])  # 200 MB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    structure_of(proto, Weights())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.parametrize("feature", FEATURES)
def test_each_payload_is_in_the_field_it_was_read_from(feature: str) -> None:
    data = FEATURES[feature]().SerializeToString()

    assert inline(load(data)).SerializeToString() == data


def test_external_data_becomes_raw_data(tmp_path: Path) -> None:
    with_external_data(plain(), tmp_path / "a.onnx", "w.bin")
    model = load(tmp_path / "a.onnx")
    structure = model.proto.SerializeToString()

    assert inline(model) == plain()
    assert model.proto.SerializeToString() == structure, "the model itself keeps its references"


def test_data_that_the_model_came_without_stays_a_reference(tmp_path: Path) -> None:
    with_external_data(plain(), tmp_path / "a.onnx", "w.bin")
    proto = onnx.load(tmp_path / "a.onnx", load_external_data=False)
    tensors = inline(load(proto, allow_missing_data=True)).graph.initializer

    assert [tensor.data_location for tensor in tensors] == [TensorProto.EXTERNAL] * 2
    with pytest.raises(LoadError, match="not given as a file"):
        load(proto)


def test_a_file_that_has_changed_since_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(plain().SerializeToString())
    model = load(tmp_path / "a.onnx")
    (tmp_path / "a.onnx").write_bytes(plain().SerializeToString() + b"\0")

    with pytest.raises(LoadError) as caught:
        inline(model)
    assert caught.value.code == "source-changed"
