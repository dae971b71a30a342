"""The drop-in for onnx's version converter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate import (
    CannotMigrate,
    LoadError,
    UsageError,
    convert_version,
    default_pipeline,
    migrate,
)
from tests.support.small_model import UPSAMPLE, bytes_of, opset_of, small

# convert_version


@pytest.mark.parametrize("target", [11, 13, 17])
def test_convert_version_changes_the_opset_and_nothing_else(target: int) -> None:
    proto = small()
    proto.doc_string, proto.producer_name, proto.model_version = "doc", "me", 7
    proto.metadata_props.add(key="k", value="v")
    before = bytes_of(proto)

    result = convert_version(proto, target)

    assert result is not proto
    assert bytes_of(proto) == before
    assert opset_of(result) == target
    for field in ("doc_string", "producer_name", "model_version"):
        assert getattr(result, field) == getattr(proto, field)
    assert list(result.metadata_props) == list(proto.metadata_props)
    assert list(result.graph.input) == list(proto.graph.input)
    assert list(result.graph.output) == list(proto.graph.output)
    if target == 11:
        assert bytes_of(result) == before


def test_convert_version_keeps_initializers_as_inputs() -> None:
    proto = small()
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3, 4]))

    assert [value.name for value in convert_version(proto, 17).graph.input] == ["x", "w"]


def test_convert_version_is_the_first_pass_of_migrate() -> None:
    proto = onnx.load(UPSAMPLE)
    before = bytes_of(proto)

    pipeline = default_pipeline(opset=17, keep_initializers_as_inputs=True, simplify=False)
    others = [name for name in pipeline.names if name != "migrate_opset"]

    assert bytes_of(convert_version(proto, 17)) == bytes_of(
        migrate(UPSAMPLE, pipeline=pipeline.without(*others), verify=False).model
    )
    assert bytes_of(proto) == before


def test_convert_version_leaves_external_data_where_they_are(tmp_path: Path) -> None:
    """As onnx's converter does with what was loaded without its weights."""
    proto = small()
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "weights"))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=1024)
    loaded = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    reference = next(tensor for tensor in loaded.graph.initializer if tensor.name == "weights")

    result = convert_version(loaded, 17)

    (kept,) = (tensor for tensor in result.graph.initializer if tensor.name == "weights")
    assert kept == reference
    with pytest.raises(LoadError, match="not given as a file"):
        onnx_migrate.migrate(loaded, opset=17)


def test_convert_version_raises_the_same_kinds() -> None:
    unique = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 11]> g (float[4] x) => (float[n] y) { y = Unique (x) }'
    )
    with pytest.raises(CannotMigrate, match="opset 11 can be reached"):
        convert_version(unique, 9)
    with pytest.raises(UsageError):
        convert_version(small(), 1000)
    with pytest.raises(LoadError):
        convert_version(onnx.ModelProto(), 17)
    unknown = small()
    unknown.graph.node[0].op_type = "NeverWas"
    with pytest.raises(CannotMigrate) as caught:
        convert_version(unknown, 17)
    assert caught.value.code == "unknown-operator"
    assert caught.value.where is not None
    assert caught.value.where.operator == "NeverWas"
