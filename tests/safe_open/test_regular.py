"""Only regular files are opened, and nothing is waited for."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from onnx_migrate.safe_open.regular import NotRegularError, open_regular, own_pipe, read_at_most


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


def test_a_file_is_opened_by_its_path_a_link_or_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("f")
    folder = os.open(tmp_path, os.O_RDONLY)
    for fd in (
        open_regular(tmp_path / "f"),
        open_regular(tmp_path / "link"),
        open_regular("link", dir_fd=folder),
    ):
        assert os.read(fd, 9) == b"abc"
        os.close(fd)
    with pytest.raises(OSError, match="symbolic links"):
        open_regular("link", dir_fd=folder, follow=False)
    os.close(folder)


def test_what_is_not_a_file_is_refused_at_once_with_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "socket"))
    for path, kind in (
        (tmp_path / "pipe", "a pipe"),
        (tmp_path / "folder", "a folder"),
        (tmp_path / "socket", "a socket"),
        (Path("/dev/zero"), "a device"),
    ):
        with pytest.raises(NotRegularError, match=kind):
            open_regular(path)
    server.close()


def test_what_becomes_a_pipe_after_it_was_looked_at_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").touch()
    file = os.stat(tmp_path / "f")
    os.unlink(tmp_path / "f")
    os.mkfifo(tmp_path / "f")
    monkeypatch.setattr(os, "stat", lambda *_args, **_kwargs: file)

    with pytest.raises(NotRegularError, match="a pipe"):
        open_regular(tmp_path / "f")


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)

    assert read_at_most(tmp_path / "f", 3) == b"abc"
    for path, limit in ((tmp_path / "f", 2), (tmp_path / "sparse", 1 << 20)):
        with pytest.raises(OSError, match="larger than") as caught:
            read_at_most(path, limit)
        assert caught.value.errno == errno.EFBIG
