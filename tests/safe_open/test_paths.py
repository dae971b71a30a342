"""What is in a folder, where links lead to, and what is opened: a regular file, or a pipe that is open already."""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
import socket
from pathlib import Path

import pytest

from onnx_migrate.safe_open.paths import exists, listed, real_path, submodules
from onnx_migrate.safe_open.regular import NotRegularError, open_regular, own_pipe, read_at_most
from tests.support.skips import Elsewhere, skip_if


@pytest.mark.parametrize(
    "name", ["onnx_migrate.passes", "onnx_migrate.passes.steps", "onnx_migrate.verify.evaluators"]
)
def test_modules_are_those_that_pkgutil_finds(name: str) -> None:
    package = importlib.import_module(name)
    assert submodules(package) == sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def test_files_are_those_that_match(tmp_path: Path) -> None:
    for name in ("b.onnx", "a.onnx", ".c.onnx", "a.onnx.data", "[x].onnx"):
        (tmp_path / name).touch()
    assert [path.name for path in listed(tmp_path, "*.onnx")] == [".c.onnx", "[x].onnx", "a.onnx", "b.onnx"]


def test_a_folder_that_cannot_be_listed_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> list[str]:
        raise PermissionError(13, os.strerror(13), folder)

    package = importlib.import_module("onnx_migrate.passes")
    monkeypatch.setattr(os, "listdir", refuse)
    for call in (lambda: listed(tmp_path, "*"), lambda: submodules(package)):
        with pytest.raises(PermissionError):
            call()


def test_a_file_that_cannot_be_looked_up_is_not_absent(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="circle"):
        exists(tmp_path / "circle")
    assert exists(tmp_path)
    assert not any(exists(tmp_path / name) for name in ("absent", "x" * 300, "absent/below"))


def test_a_link_that_was_replaced_in_between_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [OSError(errno.EINVAL, "Invalid argument"), OSError(errno.EINVAL, "Invalid argument"), "/there"]

    def changing(path: object) -> str:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os.path, "realpath", changing)
    assert real_path(tmp_path) == "/there"


def test_other_errors_are_raised_and_links_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    assert real_path(tmp_path / "link") == str(tmp_path.resolve() / "file")

    def failing(path: object) -> str:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os.path, "realpath", failing)
    with pytest.raises(OSError, match="Input/output"):
        real_path(tmp_path)


@skip_if(not os.path.isdir("/dev/fd"), "the system has no paths of descriptors", Elsewhere.LINUX)
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


@skip_if(not os.path.isdir("/dev/fd"), "the system has no paths of descriptors", Elsewhere.LINUX)
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
