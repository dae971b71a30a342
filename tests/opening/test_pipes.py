"""Which paths name a pipe that is open already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnx_migrate.opening.pipes import own_pipe
from onnx_migrate.opening.regular import read_at_most


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="the system has no paths of descriptors")
def test_pipes_of_this_process_and_nothing_else(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "named")
    (tmp_path / "file").touch()
    reader, writer = os.pipe()
    file = os.open(tmp_path / "file", os.O_RDONLY)

    assert own_pipe(f"/dev/fd/{reader}") == own_pipe(f"/proc/self/fd/{reader}") == reader
    for path in (
        tmp_path / "named",
        f"/dev/fd/{file}",
        "/dev/fd/999999",
        "/dev/fd/",
        "/dev/fd/1/x",
        "/dev/zero",
    ):
        assert own_pipe(path) is None
    os.write(writer, b"abc")
    os.close(writer)
    assert read_at_most(f"/dev/fd/{reader}", 5) == b"abc"
    os.close(reader)
    os.close(file)


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="the system has no paths of descriptors")
def test_a_pipe_is_read_up_to_a_limit() -> None:
    reader, writer = os.pipe()
    os.write(writer, bytes(9))
    with pytest.raises(OSError, match="larger than 5 bytes"):
        read_at_most(f"/dev/fd/{reader}", 5)
    os.close(reader)
    os.close(writer)
