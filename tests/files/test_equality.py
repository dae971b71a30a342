"""Two models are equal if their structures and all bytes of their weights are, wherever these are stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files import load
from onnx_migrate.files.equality import equal, file_digest
from tests.files.feature_models import FEATURES, plain, with_external_data


@pytest.mark.parametrize("feature", ["plain", "nested", "sparse", "functions", "everywhere"])
def test_a_model_is_equal_to_itself_from_any_source(feature: str, tmp_path: Path) -> None:
    proto = FEATURES[feature]()
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())

    assert equal(load(tmp_path / "a.onnx"), load(proto))
    assert equal(load(proto.SerializeToString()), load(tmp_path / "a.onnx"))


def test_external_data_is_compared_by_its_bytes(tmp_path: Path) -> None:
    with_external_data(plain(), tmp_path / "a.onnx", "w.bin")
    with_external_data(plain(), tmp_path / "b.onnx", "other.bin")

    assert equal(load(tmp_path / "a.onnx"), load(tmp_path / "b.onnx"))
    with (tmp_path / "other.bin").open("r+b") as file:
        file.seek(15_000)
        file.write(bytes(range(8)))
    assert not equal(load(tmp_path / "a.onnx"), load(tmp_path / "b.onnx"))


def renamed(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].name = "other"


def one_bit(proto: onnx.ModelProto) -> None:
    tensor = proto.graph.initializer[1]
    tensor.raw_data = tensor.raw_data[:-1] + bytes([tensor.raw_data[-1] ^ 1])


def other_type(proto: onnx.ModelProto) -> None:
    proto.graph.initializer[0].data_type = TensorProto.INT32


def swapped(proto: onnx.ModelProto) -> None:
    first, second = proto.graph.initializer
    first.raw_data, second.raw_data = second.raw_data, first.raw_data


@pytest.mark.parametrize("change", [renamed, one_bit, other_type, swapped])
def test_any_difference_is_found(change: Callable[[onnx.ModelProto], None]) -> None:
    proto = plain()
    change(proto)

    assert not equal(load(plain()), load(proto))


def test_weights_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(plain().SerializeToString())
    model = load(tmp_path / "a.onnx")
    (tmp_path / "a.onnx").unlink()

    with pytest.raises(LoadError, match=r"a\.onnx"):
        equal(model, load(plain()))


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) + 3])
def test_it_is_blake2b_of_the_whole_file(size: int, tmp_path: Path) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    (tmp_path / "a").write_bytes(content[:size])

    assert file_digest(tmp_path / "a") == hashlib.blake2b(content[:size], digest_size=16).hexdigest()
