"""Payloads are copied by whatever system call the platform has, completely or with an error."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from onnx_migrate.errors import LoadError
from onnx_migrate.files import byte_copy, inline, load, save
from onnx_migrate.model.payloads import BufferPayload, FilePayload, TensorPayload
from tests.files.feature_models import plain, weight
from tests.files.saving import changed, names


def drained(*args: object, **kwargs: object) -> int:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@pytest.mark.parametrize("missing", [(), ("copy_file_range",), ("copy_file_range", "sendfile")])
@pytest.mark.parametrize("how", ["absent", "refused", "blind"])
def test_each_system_call_copies_all_bytes(
    missing: tuple[str, ...], how: str, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_copy, "WRITEBACK_STEP", 5000)
    monkeypatch.setattr(byte_copy, "CHUNK", 700)
    for name in missing:
        if how == "absent":
            monkeypatch.delattr(os, name)
        else:
            monkeypatch.setattr(os, name, drained if how == "refused" else lambda *args, **kwargs: 0)
    want = plain()
    want.producer_name = "changed"
    save(changed(source), out)
    assert out.read_bytes() == want.SerializeToString()
    save(changed(source), out, external=True)
    assert inline(load(out)) == want


def test_a_file_cut_while_it_is_copied(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = changed(source)
    copy = os.copy_file_range

    def cut(*args: int, **kwargs: int) -> int:
        os.truncate(source, 100)
        return copy(*args, **kwargs)

    monkeypatch.setattr(os, "copy_file_range", cut)
    with pytest.raises(Exception, match="ends at byte"):
        save(loaded, out)
    assert names(out.parent) == set()


@pytest.mark.parametrize("where", ["model", "data"])
def test_a_file_that_is_written_to_during_the_copy_gives_no_result(
    where: str, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = source
    if where == "data":
        save(load(source), source.with_name("e.onnx"), external=True)
        source, read = source.with_name("e.onnx"), source.with_name("e.onnx.data")
    loaded = changed(source)
    copy = os.copy_file_range

    def written(*args: int, **kwargs: int) -> int:
        done = copy(*args, **kwargs)
        with read.open("r+b") as file:  # what was copied is of before, what comes is of after
            file.write(b"x")
        os.utime(read, ns=(1, 1))
        return done

    monkeypatch.setattr(os, "copy_file_range", written)
    with pytest.raises(LoadError) as refused:
        save(loaded, out)
    assert refused.value.code == "source-changed"
    assert names(out.parent) == set()


def test_pieces_of_each_kind_are_written_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(byte_copy, "CHUNK", 4)
    (tmp_path / "data").write_bytes(b"0123456789")
    tensor = weight("w")
    pieces = [
        b"ab",
        FilePayload(tmp_path / "data", 2, 5),
        b"cd",
        b"efgh",
        BufferPayload(memoryview(b"buffer"), 6),
        TensorPayload(tensor, len(tensor.raw_data)),
        FilePayload(tmp_path / "data", 0, 1),
        b"",
    ]
    with (tmp_path / "out").open("wb", buffering=0) as file:
        file.write(b"before")
        byte_copy.write_pieces(file.fileno(), pieces)

    assert (tmp_path / "out").read_bytes() == b"beforeab23456cdefghbuffer" + tensor.raw_data + b"0"


def test_a_file_that_is_too_short_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"0123456789")
    with (tmp_path / "out").open("wb", buffering=0) as file, pytest.raises(LoadError) as caught:
        byte_copy.write_pieces(file.fileno(), [FilePayload(tmp_path / "data", 4, 20)])
    assert caught.value.code == "missing-data"
    assert "ends at byte 10, but the model needs it up to byte 24" in caught.value.reason
