"""A file is replaced as a whole or not at all, and leaves no temporary file."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from onnx_migrate.files import inline, load, save
from onnx_migrate.files.atomic_file import NewFile, remove_leftovers
from onnx_migrate.model.payloads import file_stamp
from tests.files.feature_models import model, weight
from tests.files.saving import changed, names, other, refusal
from tests.support.skips import Elsewhere, skip


def test_a_temporary_file_in_use_is_not_removed(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    target = out.with_name("b.onnx")
    with NewFile(target, [b"half"]):
        held = names(out.parent)
        remove_leftovers(target)
        assert names(out.parent) == held != set()
    assert names(out.parent) == set()
    stray, alike = out.with_name(".b.onnx.123-4.tmp"), out.with_name(".b.onnx.mine.tmp")
    stray.touch()
    alike.touch()
    remove_leftovers(target)
    assert names(out.parent) == {alike.name}


@pytest.mark.parametrize("nameless", [True, False], ids=["O_TMPFILE", "named"])
@pytest.mark.parametrize("external", [False, True])
def test_a_full_disk(
    external: bool, nameless: bool, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    save(load(other()), out, external=external)
    before = names(out.parent)

    def full(*args: object, **kwargs: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for call in ("copy_file_range", "write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            assert "No space left" in str(refusal("cannot-write", changed(source), out, external=external))
        assert names(out.parent) == before
        assert inline(load(out)) == other()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        skip("may not mount", Elsewhere.ROOT)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("external", [False, True])
def test_a_full_tmpfs(external: bool, source: Path, small_disk: Path) -> None:
    out = small_disk / "b.onnx"
    save(load(other()), out, external=external)
    before = names(small_disk)
    source.write_bytes(model([weight("w", 1, 50_000)]).SerializeToString())
    assert "No space left" in str(refusal("cannot-write", changed(source), out, external=external))
    assert names(small_disk) == before
    assert inline(load(out)) == other()


@pytest.mark.parametrize("nameless", [True, False], ids=["O_TMPFILE", "named"])
def test_the_old_content_stays_until_put(nameless: bool, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    out.write_bytes(b"old")
    out.chmod(0o604)
    with NewFile(out, [b"new, ", b"in two pieces"]) as file:
        assert out.read_bytes() == b"old"
        file.put()
        assert file.stamp() == file_stamp(out.stat())
    assert out.read_bytes() == b"new, in two pieces"
    assert out.stat().st_mode & 0o777 == 0o604
    with NewFile(out, [b"never put"]):
        pass
    assert out.read_bytes() == b"new, in two pieces"
    assert names(out.parent) == {"b.onnx"}


def test_content_is_on_the_disk_before_the_name_and_the_folder_after_it(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(fd: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        fsync(fd)

    def replaced(source: str, target: str) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    with NewFile(out, [b"new"]) as file:
        file.put()
    assert calls == ["file", "rename", "folder"]


def test_an_error_in_the_pieces_leaves_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * 3_000_000
        raise KeyboardInterrupt

    monkeypatch.delattr(os, "O_TMPFILE")
    with pytest.raises(KeyboardInterrupt):
        NewFile(out, broken())
    assert names(out.parent) == set()
