"""A model with all its data inside is the model that was read."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.files.to_proto import inline
from tests.files.feature_models import FEATURES, plain, with_external_data


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
