"""A file as a buffer: the same bytes as in memory, and an error where they are gone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from onnx_migrate.files.wire.file_buffer import FileBuffer, FileCut
from onnx_migrate.files.wire.payload_references import split
from tests.files.feature_models import model, weight


@pytest.fixture
def data() -> bytes:
    return np.random.default_rng(0).bytes(300_001)


def test_it_holds_what_the_file_holds(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    rng = np.random.default_rng(1)
    with (tmp_path / "f").open("rb") as file:
        buffer = FileBuffer(file.fileno(), len(data))

        assert len(buffer) == len(data)
        assert buffer[:] == data
        for at in (0, 65_535, 65_536, 65_535, 300_000, 3, *rng.integers(0, 300_001, 300).tolist()):
            assert buffer[at] == data[at]
            for length in (0, 1, 4097, 65_536, 65_537, 400_000):
                assert buffer[at : at + length] == data[at : at + length]
        with pytest.raises(IndexError):
            buffer[300_001]


def test_a_model_is_split_as_in_memory(tmp_path: Path) -> None:
    data = model([weight("w"), weight("v", 1, 100_000)]).SerializeToString()
    (tmp_path / "f").write_bytes(data)

    def split_of(source: bytes | FileBuffer) -> tuple[bytes, list[object]]:
        kept: list[object] = []
        return split(source, lambda *found: (kept.append(found), ("f", len(kept)))[1]), kept

    with (tmp_path / "f").open("rb") as file:
        assert split_of(FileBuffer(file.fileno(), len(data))) == split_of(data)


@pytest.mark.parametrize("key", [150_000, slice(150_000, 150_010), slice(0, 200_000)])
def test_a_file_that_was_cut_is_an_error(key: int | slice, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(data)
    with (tmp_path / "f").open("rb") as file:
        buffer = FileBuffer(file.fileno(), len(data))
        assert buffer[0] == data[0]
        os.truncate(tmp_path / "f", 100_000)

        with pytest.raises(FileCut):
            buffer[key]
