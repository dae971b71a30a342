"""Nothing of a model is lost or altered between load and save, whichever way it comes in."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.files import inline, load, save
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import INLINE_LIMIT
from tests.files.feature_models import FEATURES, UNKNOWN, plain, with_external_data

ALL = pytest.mark.parametrize("feature", FEATURES)


def structure_size(model: object) -> int:
    return sum(t.ByteSize() for t in tensors(model.proto))  # type: ignore[attr-defined]


@ALL
def test_a_file_comes_back_byte_for_byte(feature: str, tmp_path: Path) -> None:
    data = FEATURES[feature]().SerializeToString()
    (tmp_path / "a.onnx").write_bytes(data)
    model = load(tmp_path / "a.onnx")
    save(model, tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == data
    assert inline(model).SerializeToString() == data


@ALL
def test_assembling_reproduces_a_canonical_file(feature: str, tmp_path: Path) -> None:
    # Not by the short way that copies an unchanged file: a changed and changed back structure.
    data = FEATURES[feature]().SerializeToString()
    (tmp_path / "a.onnx").write_bytes(data)
    model = load(tmp_path / "a.onnx")
    model.weights.digest = None
    save(model, tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == data


@ALL
def test_bytes_and_protos_are_the_same_as_files(feature: str, tmp_path: Path) -> None:
    proto = FEATURES[feature]()
    data = proto.SerializeToString()
    for number, source in enumerate((data, bytearray(data), proto)):
        model = load(source)  # type: ignore[arg-type]
        save(model, tmp_path / f"{number}.onnx")
        assert (tmp_path / f"{number}.onnx").read_bytes() == data
        assert inline(model).SerializeToString() == data
    assert proto.SerializeToString() == data, "the argument is untouched"


@ALL
def test_a_change_is_kept_and_nothing_else_changes(feature: str, tmp_path: Path) -> None:
    proto = FEATURES[feature]()
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    model = load(tmp_path / "a.onnx")
    for edited in (model.proto, proto):
        edited.graph.node[0].op_type += "Changed"
        edited.producer_name = "a longer name than the one before"
    save(model, tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == proto.SerializeToString()


@ALL
def test_external_data_and_back(feature: str, tmp_path: Path) -> None:
    proto = FEATURES[feature]()
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx", external=True)
    if feature == "future":
        return  # onnx itself does not know the size of a type it does not know
    save(load(tmp_path / "b.onnx"), tmp_path / "c.onnx")
    back = onnx.load(tmp_path / "c.onnx")
    want = onnx.ModelProto.FromString(proto.SerializeToString())
    for tensor in tensors(want):
        if tensor.data_location == TensorProto.DEFAULT and len(tensor.raw_data) > INLINE_LIMIT:
            tensor.ClearField("external_data")  # stale, and written anew
            tensor.ClearField("data_location")
        for name in ("float_data", "double_data"):  # external data knows no typed fields
            if len(getattr(tensor, name)) > 1024 and not tensor.raw_data:
                packed = onnx.TensorProto.FromString(tensor.SerializeToString())
                for other in TensorProto.DESCRIPTOR.fields_by_name:
                    if other != name:
                        packed.ClearField(other)
                tensor.ClearField(name)
                data = packed.SerializeToString()  # a tag and a length, then the numbers
                tensor.raw_data = data[3 if len(data) < 2**14 else 4 :]
    assert back.SerializeToString() == want.SerializeToString()


def test_large_payloads_are_not_in_the_structure(tmp_path: Path) -> None:
    for feature in sorted(set(FEATURES) - {"typed", "unusual"}):
        proto = FEATURES[feature]()
        (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
        for source in (tmp_path / "a.onnx", proto.SerializeToString(), proto):
            model = load(source)
            for tensor in tensors(model.proto):
                assert len(tensor.raw_data) + 4 * len(tensor.float_data) <= INLINE_LIMIT, (
                    feature,
                    tensor.name,
                )


def test_every_source_has_the_same_structure(tmp_path: Path) -> None:
    for feature, make in FEATURES.items():
        proto = make()
        (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
        protos = [load(source).proto for source in (tmp_path / "a.onnx", proto.SerializeToString(), proto)]
        for structure in protos:
            for tensor in tensors(structure):
                if tensor.data_location == TensorProto.EXTERNAL:
                    tensor.ClearField("external_data")
        assert len({structure.SerializeToString() for structure in protos}) == 1, feature


def test_the_structure_runs_beside_its_file(tmp_path: Path) -> None:
    import numpy as np
    import onnxruntime

    path = tmp_path / "a.onnx"
    path.write_bytes(plain().SerializeToString())
    feeds = {"x": np.ones((2, 3000), np.float32)}
    (want,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    structure = load(path).proto.SerializeToString()
    assert len(structure) < 1000
    session = onnxruntime.InferenceSession(structure, options, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, feeds)
    assert np.array_equal(got, want, equal_nan=True)


def test_the_field_order_of_an_unchanged_file_is_kept(tmp_path: Path) -> None:
    proto = plain()
    proto.MergeFromString(UNKNOWN)
    parts = []
    for name in ("opset_import", "graph", "producer_name", "ir_version"):
        part = onnx.ModelProto()
        value = getattr(proto, name)
        if name == "graph":
            part.graph.CopyFrom(value)
        elif name == "opset_import":
            part.opset_import.MergeFrom(value)
        else:
            setattr(part, name, value)
        parts.append(part.SerializeToString())
    data = UNKNOWN + b"".join(parts)
    assert data != proto.SerializeToString()
    (tmp_path / "a.onnx").write_bytes(data)
    save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == data
    model = load(tmp_path / "a.onnx")
    model.proto.producer_name = proto.producer_name = "changed"
    save(model, tmp_path / "c.onnx")
    assert (tmp_path / "c.onnx").read_bytes() == proto.SerializeToString()
    save(load(tmp_path / "c.onnx"), tmp_path / "d.onnx")
    assert (tmp_path / "d.onnx").read_bytes() == proto.SerializeToString()


def test_data_marked_external_but_not_written_yet_is_saved(tmp_path: Path) -> None:
    proto = plain()
    proto.graph.initializer.add(name="small", dims=[1], data_type=1, raw_data=b"1234")
    want = proto.SerializeToString()
    onnx.external_data_helper.convert_model_to_external_data(proto, location="none.bin", size_threshold=0)
    before = proto.SerializeToString()
    model = load(proto)
    save(model, tmp_path / "a.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == want
    assert inline(model).SerializeToString() == want
    assert proto.SerializeToString() == before


def test_shared_references_are_written_once(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(plain().SerializeToString())
    model = load(tmp_path / "a.onnx")
    model.proto.graph.initializer.add().CopyFrom(model.proto.graph.initializer[0])
    model.proto.graph.initializer[2].name = "again"
    save(model, tmp_path / "b.onnx", external=True)
    assert (tmp_path / "b.onnx.data").stat().st_size == 12_032 + 12_000
    back = onnx.load(tmp_path / "b.onnx").graph.initializer
    assert back[0].raw_data == back[2].raw_data == plain().graph.initializer[0].raw_data


def test_after_a_change_of_type_the_data_is_written_as_raw_data(
    tmp_path: Path,
) -> None:
    proto = FEATURES["signalling_nan"]()
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    model = load(tmp_path / "a.onnx")
    model.proto.graph.initializer[0].data_type = TensorProto.INT32
    save(model, tmp_path / "b.onnx")
    (tensor,) = onnx.load(tmp_path / "b.onnx").graph.initializer
    assert tensor.raw_data[:4] == bytes.fromhex("0100a07f")
    assert inline(model).graph.initializer[0] == tensor


def test_onnx_external_data_is_inlined_where_it_fits(tmp_path: Path) -> None:
    with_external_data(plain(), tmp_path / "a.onnx", "w.bin")
    save(load(tmp_path / "a.onnx"), tmp_path / "b.onnx")
    assert (tmp_path / "b.onnx").read_bytes() == plain().SerializeToString()
    assert inline(load(tmp_path / "a.onnx")).SerializeToString() == plain().SerializeToString()
