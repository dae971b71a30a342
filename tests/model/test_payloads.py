"""Payloads are read as raw data from files, buffers and the caller's tensors, and a change since the load is noticed."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.model.payloads import BufferPayload, FilePayload, TensorPayload, file_stamp

VALUES = np.arange(4, dtype=np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "w.bin"
    path.write_bytes(b"head" + VALUES.tobytes() + b"tail")
    return path


def test_bytes_of_a_file_from_an_offset(path: Path) -> None:
    assert FilePayload(path, 4, 16, stamp=file_stamp(path.stat())).read() == VALUES.tobytes()


def test_a_file_that_changed_is_gone_or_ends_early_is_refused(path: Path) -> None:
    stamped = FilePayload(path, 4, 16, stamp=file_stamp(path.stat()))
    with pytest.raises(LoadError, match="ends before byte 104"):
        FilePayload(path, 4, 100).read()
    os.utime(path, ns=(0, 0))
    with pytest.raises(LoadError) as changed:
        stamped.read()
    path.unlink()
    with pytest.raises(LoadError) as gone:
        stamped.read()

    assert (changed.value.code, gone.value.code) == ("source-changed", "missing-data")


def test_a_file_that_is_written_to_while_it_is_read_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = FilePayload(path, 4, 16, stamp=file_stamp(path.stat()))

    def seek(file: io.FileIO, offset: int) -> int:
        os.utime(path, ns=(0, 0))
        return super(type(file), file).seek(offset)

    monkeypatch.setattr(io, "FileIO", type("FileIO", (io.FileIO,), {"seek": seek}))
    with pytest.raises(LoadError) as caught:
        payload.read()
    assert caught.value.code == "source-changed"


def test_what_became_a_pipe_does_not_block(path: Path) -> None:
    payload = FilePayload(path, 4, 16, stamp=file_stamp(path.stat()))
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(LoadError) as caught:
        payload.read()
    assert caught.value.code == "source-changed"


def test_a_slice_of_a_buffer() -> None:
    assert BufferPayload(memoryview(b"0123456789")[2:5], 3).read() == b"234"


@pytest.mark.parametrize("raw", [True, False])
def test_a_tensor_of_the_caller(raw: bool) -> None:
    tensor = numpy_helper.from_array(VALUES) if raw else helper.make_tensor("w", 1, [4], VALUES)
    payload = TensorPayload(tensor, 16)

    assert payload.field == ("raw_data" if raw else "float_data")
    assert payload.read() == VALUES.tobytes()
    assert payload.extra_fields == b""

    tensor.ClearField(payload.field)
    with pytest.raises(LoadError, match="was removed after the model was loaded"):
        payload.read()
    tensor.raw_data = b"1234"
    with pytest.raises(LoadError, match="has 4 bytes of data, but its dims and type need 16"):
        payload.read()


def test_the_fields_beside_the_data_are_kept_unless_they_wait_for_a_save() -> None:
    tensor = numpy_helper.from_array(VALUES)
    tensor.external_data.add(key="checksum", value="1")
    kept = TensorProto.FromString(TensorPayload(tensor, 16).extra_fields)
    assert [entry.key for entry in kept.external_data] == ["checksum"]

    tensor.data_location = TensorProto.EXTERNAL
    assert TensorPayload(tensor, 16).extra_fields == b""
