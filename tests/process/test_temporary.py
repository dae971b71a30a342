"""A temporary folder is removed, with its content, when nothing refers to it."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onnx_migrate.files.atomic_file import folder_lock
from onnx_migrate.process import temporary
from onnx_migrate.process.temporary import TemporaryFolder, remove_all, remove_stale
from tests.support.paths import ROOT
from tests.support.processes import Start
from tests.support.skips import Elsewhere, skip_if


def test_it_exists_as_long_as_it_is_referred_to() -> None:
    folder = TemporaryFolder()
    keeper, path = [folder], folder.path
    (path / "sub").mkdir()
    (path / "sub" / "file").write_bytes(b"x")
    del folder
    gc.collect()

    assert (path / "sub" / "file").read_bytes() == b"x"
    keeper.clear()
    gc.collect()
    assert not path.exists()


def test_two_folders_are_not_one() -> None:
    first, second = TemporaryFolder(), TemporaryFolder()

    assert first.path != second.path


def test_a_block_removes_it() -> None:
    with TemporaryFolder() as path:
        (path / "file").write_bytes(b"x")
    assert not path.exists()


def test_files_can_be_saved_in_it() -> None:
    with TemporaryFolder() as path, folder_lock(path):
        pass


def test_all_are_removed_at_once() -> None:
    folders = [TemporaryFolder(), TemporaryFolder()]
    remove_all()
    assert not any(folder.path.exists() for folder in folders)


@skip_if(sys.platform == "win32", "POSIX locks", Elsewhere.LINUX)
def test_no_folder_is_left_where_its_lock_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real = os.open

    def full(path: str | Path, *arguments: Any, **more: Any) -> int:
        if Path(path).name == ".lock":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        TemporaryFolder()

    assert os.listdir(tmp_path) == []


@skip_if(sys.platform == "win32", "folders have no descriptors", Elsewhere.LINUX)
def test_a_close_that_reports_an_error_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system that is full; the descriptor is closed all the same."""
    real = os.close

    def complaining(descriptor: int) -> None:
        real(descriptor)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folder = TemporaryFolder()
    for number in range(10):  # more than the attempts
        (folder.path / f"sub{number}" / "below").mkdir(parents=True)
        (folder.path / f"sub{number}" / "below" / "file").write_bytes(b"x")
    (folder.path / "link").symlink_to("sub1")
    monkeypatch.setattr(os, "close", complaining)
    folder.remove()

    assert not folder.path.exists()


KILLED = """
import os, signal, sys
from onnx_migrate.process import temporary
from onnx_migrate.process.temporary import TemporaryFolder
folder = TemporaryFolder()
(folder.path / ".ses").write_bytes(b"x")
print(folder.path, flush=True)
{}
"""


def run(start: Start, root: Path, code: str) -> subprocess.Popen[str]:
    """Start a process that makes a folder in `root`, and wait until it is there."""
    process = start(
        [sys.executable, "-c", KILLED.format(code)],
        env={**os.environ, "TMPDIR": str(root), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    folder = process.stdout.readline().strip()
    assert Path(folder, ".ses").parent.parent == root
    return process


@skip_if(sys.platform == "win32", "POSIX locks", Elsewhere.LINUX)
def test_what_a_killed_process_left_is_removed_by_the_next_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    living = run(start, tmp_path, "sys.stdin.read()")
    own = TemporaryFolder()
    for name in (
        "onnx-migrate-x",
        "onnx-migrate-1-abcdefgh.txt",
        "other-99999-abcdefgh",
        "onnx-migrate-1-abcdefgh",
    ):
        (tmp_path / name).mkdir()  # the process of the last one lives
    (tmp_path / "target").mkdir()
    (tmp_path / "onnx-migrate-99999999-abcdefgh").symlink_to("target")
    (tmp_path / "onnx-migrate-99999999-bbbbbbbb").write_bytes(b"")
    before = set(os.listdir(tmp_path))

    with run(start, tmp_path, "os.kill(os.getpid(), signal.SIGKILL)"):
        pass
    assert len(os.listdir(tmp_path)) == len(before) + 1
    remove_stale(tmp_path)

    assert set(os.listdir(tmp_path)) == before
    assert own.path.exists()
    living.communicate("")
    assert len(os.listdir(tmp_path)) == len(before) - 1


@skip_if(sys.platform == "win32", "POSIX locks", Elsewhere.LINUX)
def test_the_folder_of_a_process_that_is_not_seen_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    """In another container, with other process ids, it holds the lock all the same."""
    with run(start, tmp_path, "sys.stdin.read()") as living:
        monkeypatch.setattr("onnx_migrate.process.temporary._is_alive", lambda process: False)
        remove_stale(tmp_path)
        assert len(os.listdir(tmp_path)) == 1
        living.communicate("")


@skip_if(not hasattr(os, "fork"), "needs fork", Elsewhere.LINUX)
def test_a_fork_does_not_remove_the_folders_of_its_parent() -> None:
    folder = TemporaryFolder()
    child = os.fork()
    if not child:
        try:
            remove_all()
            folder.remove()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert folder.path.exists()


def test_a_thread_that_searches_does_not_remove_what_another_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search of the first thread meets the folder of the second between its making and its lock."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    searching, found = threading.Event(), []
    search, lock = temporary.remove_stale, temporary._locked

    def slow_search(root: Path) -> None:
        searching.set()
        time.sleep(0.2)  # in which the second thread makes its folder, if it may
        search(root)

    def slow_lock(path: Path) -> int | None:
        time.sleep(0.4 if threading.current_thread().name == "second" else 0)
        return lock(path)

    monkeypatch.setattr(temporary, "remove_stale", slow_search)
    monkeypatch.setattr(temporary, "_locked", slow_lock)
    monkeypatch.setattr(temporary, "_NEW", -1.0)

    def make() -> None:
        found.append(temporary.TemporaryFolder())

    first = threading.Thread(target=make, name="first")
    first.start()
    searching.wait(5)
    second = threading.Thread(target=make, name="second")
    second.start()
    first.join()
    second.join()

    assert [folder.path.is_dir() for folder in found] == [True, True]


def test_a_search_lets_no_other_thread_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(_: Path) -> None:
        begun.set()
        go.wait(10)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(temporary, "remove_stale", slow)
    first: list[TemporaryFolder] = []
    thread = threading.Thread(target=lambda: first.append(TemporaryFolder()))
    thread.start()
    begun.wait(10)
    with TemporaryFolder() as path:
        assert path.parent == tmp_path
        assert thread.is_alive()
    go.set()
    thread.join()
    assert first[0].path.is_dir()


@skip_if(sys.platform != "linux", "limits of POSIX", Elsewhere.LINUX)
def test_a_folder_is_removed_where_no_more_files_may_be_open() -> None:
    import resource

    folder = TemporaryFolder()
    (folder.path / "file").write_bytes(b"x")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    kept: list[int] = []

    def open_all() -> None:
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))

    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 3, before[1]))
        with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            open_all()
        folder.remove()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in kept:
            os.close(number)
    assert not folder.path.exists()


def test_no_folder_for_temporary_files_is_an_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(OSError, match="TMPDIR can name"):
        TemporaryFolder()
