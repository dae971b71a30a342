"""Files beside the model: refused before the work where they cannot be written, and there with the model or not at all.

Files that a command reads, and files of another kind, are not overwritten.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from onnx_migrate.cli.output.side_files import SideFile, published
from onnx_migrate.errors import SaveError, UsageError
from onnx_migrate.messages import collected_remarks
from tests.cli.running import FAST, Run, large, no_file_larger_than, snapshot
from tests.support.skips import Elsewhere, skip_if

BOTH = ("--html", "o.html", "--depfile", "o.d")


def text(path: Path | str) -> SideFile:
    return SideFile("--text", str(path), "a text", lambda head: head.startswith(b"text"))


@pytest.fixture
def places(folder: Path) -> Path:
    """The working folder, with what is no file that can be replaced."""
    (folder / "dir").mkdir()
    os.mkfifo("fifo")
    for link, target in {"null": "/dev/null", "out": "dir/page", "in": "new", "self": "self"}.items():
        os.symlink(target, link)
    return folder


@pytest.mark.parametrize("option", ["--html", "--depfile"])
@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("/dev/null", 1, "cannot-write: small.onnx: /dev/null is not a regular file"),
        ("/dev/stdout", 1, "cannot-write: small.onnx: /dev/stdout is what a process has open"),
        ("/dev/fd/2", 1, "cannot-write: small.onnx: /dev/fd/2 is what a process has open"),
        ("null", 1, "cannot-write: small.onnx: null is not a regular file"),
        ("fifo", 1, "cannot-write: small.onnx: fifo is not a regular file"),
        ("dir", 1, "is-directory: small.onnx: dir is a directory"),
        ("out", 1, "cannot-write: small.onnx: out is a link to {}/dir/page, which is in another folder"),
        ("self", 1, "cannot-write: small.onnx: self cannot be written: Too many levels of symbolic links"),
        ("no/such", 1, "no-such-folder: small.onnx: no/such: the folder {}/no does not exist"),
        ("-", 2, "usage: small.onnx: {option} needs a file, not standard output"),
        ("s3://a/b", 2, "usage: small.onnx: {option} needs a file, not a URL"),
        ("small.onnx", 1, "would-overwrite: small.onnx exists and is not"),
    ],
)
def test_a_place_for_no_file_is_refused_before_the_work(
    cli: Run, places: Path, option: str, path: str, code: int, message: str
) -> None:
    """The work would fail for the pass that is not there."""
    before, device = snapshot(places), os.stat("/dev/null").st_rdev

    ended = cli("small.onnx", "o.onnx", option, path, "--pass", "nowhere:nothing")

    assert (ended.code, ended.out) == (code, "")
    expected = message.replace("{}", str(places)).replace("{option}", option)
    assert ended.err.startswith(f"onnx-migrate: {expected}")
    assert snapshot(places) == before
    assert (os.stat("/dev/null").st_rdev, stat.S_ISFIFO(os.stat("fifo").st_mode)) == (device, True)


def test_a_link_within_the_folder_is_followed(cli: Run, places: Path) -> None:
    assert cli("small.onnx", "o.onnx", "--html", "in", *FAST).code == 0
    assert os.readlink("in") == "new"
    assert (places / "new").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def failing(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the call of that number of a function of os fail, and return a list that gets what it was called with."""
    real: Callable[..., object] = getattr(os, name)
    calls: list[str] = []

    def call(*args: Any, **more: object) -> object:
        if name == "write" and not stat.S_ISREG(os.fstat(args[0]).st_mode):
            return real(*args, **more)
        calls.append(str(args[-1]))
        if len(calls) == number:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(*args, **more)

    monkeypatch.setattr(os, name, call)
    return calls


@pytest.mark.filterwarnings("ignore:.* is written, but")
@pytest.mark.parametrize("old", [False, True], ids=["new", "old"])
@pytest.mark.parametrize("data", [False, True], ids=["one file", "external data"])
@pytest.mark.parametrize("call", ["replace", "link", "write", "fsync"])
def test_no_output_is_written_where_one_fails(
    cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, call: str, data: bool, old: bool
) -> None:
    """Every call fails once, until a run makes fewer of them; what was there is as it was, to the inode."""
    onnx.save(large(), "large.onnx")
    args = ["large.onnx", "o.onnx", *BOTH, *FAST, *(["--save-as-external-data"] if data else [])]
    if old:
        assert cli(*args, "--opset", "13").code == 0
    before = snapshot(folder)
    codes = []
    for number in range(1, 60):
        for path in folder.iterdir():
            path.unlink()
        for name, content in before.items():
            (folder / name).write_bytes(content)
        inodes = {name: os.stat(name).st_ino for name in before}
        with monkeypatch.context() as patch:
            calls = failing(call, number, patch)
            codes.append(cli(*args).code)
        after = snapshot(folder)
        if codes[-1] == 0:  # a warning, and what is left behind is tidied up by the next run
            assert after.keys() >= {"o.onnx", "o.html", "o.d"}
            assert all(after[name] != before.get(name) for name in ("o.onnx", "o.html"))
        else:
            assert codes[-1] == 1, number
            page = after.pop("o.html", b"")  # of the failure
            assert b"cannot-write" in page, number
            assert after == {name: value for name, value in before.items() if name != "o.html"}, number
            assert {name: os.stat(name).st_ino for name in after} == {name: inodes[name] for name in after}
        if len(calls) < number:
            break
    assert codes[-1] == 0
    assert 1 in codes


def _fails(*args: object, **more: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def _publish_without_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with published({text("a"): [b"text 2"]}):
        monkeypatch.setattr(os, "replace", _fails)
        raise SaveError("no model")


def test_where_nothing_can_be_renamed_the_old_content_is_written_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_bytes(b"text 1")
    with pytest.raises(SaveError, match=r"^no model$"):
        _publish_without_model(monkeypatch)
    assert (folder / "a").read_bytes() == b"text 1"
    assert sorted(os.listdir()) == ["a", "small.onnx"]


def test_what_cannot_be_put_back_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a").write_bytes(b"text 1")
    monkeypatch.setattr(shutil, "copyfile", _fails)
    with pytest.raises(SaveError, match=r"^no model; a is written and could not be put back: Input/output"):
        _publish_without_model(monkeypatch)
    assert (folder / "a").read_bytes() == b"text 2"


def test_what_was_not_replaced_needs_no_putting_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a").write_bytes(b"text 1")
    monkeypatch.setattr(os, "replace", _fails)
    with pytest.raises(SaveError, match=r"^a: cannot be written: Input"), published({text("a"): [b"text 2"]}):
        pytest.fail("the block does not run")
    assert (folder / "a").read_bytes() == b"text 1"
    assert sorted(os.listdir()) == ["a", "small.onnx"]


@pytest.mark.parametrize(("where", "call", "told"), [(os, "close", 0), (Path, "unlink", 1)])
def test_what_cannot_be_closed_or_removed_changes_no_exit_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch, where: Any, call: str, told: int
) -> None:
    (folder / "a").write_bytes(b"text 1")
    with collected_remarks() as remarks, published({text("a"): [b"text 2"]}):
        monkeypatch.setattr(where, call, _fails)
    assert (folder / "a").read_bytes() == b"text 2"
    assert ["could not be removed: Input/output error" in each for each in remarks] == [True] * told


def test_names_are_taken_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a").write_bytes(b"text 1")
    failing("replace", 2, monkeypatch)
    with (
        pytest.raises(SaveError, match=r"^b: cannot be written"),
        published({text("a"): [b""], text("b"): [b""]}),
    ):
        pytest.fail("the block does not run")
    assert snapshot(folder) == {**snapshot(folder), "a": b"text 1"}
    assert sorted(os.listdir()) == ["a", "small.onnx"]


def test_what_a_killed_process_left_is_removed(folder: Path) -> None:
    (folder / "a").write_bytes(b"text 1")
    (folder / ".a.99999-0.tmp").write_bytes(b"text 0")
    with published({text("a"): [b"text 2"]}):
        assert (folder / "a").read_bytes() == b"text 2"
    assert sorted(os.listdir()) == ["a", "small.onnx"]


def test_only_a_file_of_its_kind_is_replaced(folder: Path) -> None:
    (folder / "a").write_bytes(b"other")
    with pytest.raises(SaveError, match="a exists and is not a text") as caught:
        text("a").check()
    assert caught.value.code == "would-overwrite"
    (folder / "a").write_bytes(b"")
    assert text("file:///" + str(folder / "a").lstrip("/")).check() == folder / "a"
    with pytest.raises(UsageError):
        text("-")


@skip_if(sys.platform != "linux", "limits of this kind", Elsewhere.LINUX)
def test_a_page_is_complete_before_the_first_byte_of_a_model_on_standard_output(
    process: Run, folder: Path, command: list[str]
) -> None:
    """No file can have more than 5,000 bytes: the model has less, the page more."""
    args = "small.onnx", "-", "--html", "o.html", *FAST
    ended = process(*args, start=[*no_file_larger_than(5000), *command])

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(
        "onnx-migrate: cannot-write: small.onnx: o.html: cannot be written: File too large"
    )
    assert sorted(os.listdir()) == ["small.onnx"]


@pytest.fixture
def files(folder: Path) -> Path:
    """The working folder, with a model and its external weights, links to these, inputs and a config file."""
    onnx.save(large(), "l.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    os.symlink("w.bin", "link.bin")
    os.link("w.bin", "hard.bin")
    os.link("w.bin", "w.data")
    np.savez("in.npz", x=np.zeros((1, 3, 8, 8), np.float32))
    (folder / "c.toml").write_text("verify = false\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("w.bin",), 1, "would-overwrite: l.onnx: w.bin is a file that the model is read from"),
        (("link.bin",), 1, "would-overwrite: l.onnx: link.bin is a file that"),
        (("hard.bin",), 1, "would-overwrite: l.onnx: hard.bin is a file that"),
        (("../work/w.bin",), 1, "would-overwrite: l.onnx: ../work/w.bin is a file that"),
        (("w.bin", "--save-as-external-data"), 1, "would-overwrite: l.onnx: w.bin is a file that"),
        (("w", "--save-as-external-data"), 1, "would-overwrite: l.onnx: w.data is a file that"),
        (
            ("o.onnx", "--depfile", "w.bin"),
            1,
            "would-overwrite: l.onnx: w.bin exists and is not a dependency file",
        ),
        (("o.onnx", "--depfile", "l.onnx"), 1, "would-overwrite: l.onnx exists and is not a dependency file"),
        (("o.onnx", "--html", "w.bin"), 1, "would-overwrite: l.onnx: w.bin exists and is not an HTML page"),
        (("o.onnx", "--html", "l.onnx"), 1, "would-overwrite: l.onnx exists and is not an HTML page"),
        (
            ("--check", "--html", "hard.bin"),
            1,
            "would-overwrite: l.onnx: hard.bin exists and is not an HTML page",
        ),
        (("--in-place", "--html", "l.onnx"), 2, "usage: l.onnx is given twice"),
        (("o.onnx", "--html", "o.onnx"), 2, "usage: l.onnx: o.onnx is given twice"),
        (("o.onnx", "--html", "./o.onnx"), 2, "usage: l.onnx: o.onnx and ./o.onnx are the same file"),
        (("o.onnx", "--html", "o.onnx.data"), 2, "usage: l.onnx: o.onnx.data is given twice"),
        (("o.onnx", "--depfile", "o.onnx"), 2, "usage: l.onnx: o.onnx is given twice"),
        (("in.npz", "--input-data", "in.npz"), 2, "usage: l.onnx: in.npz is given twice"),
        (("c.toml", "--config", "c.toml"), 2, "usage: l.onnx: c.toml is given twice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_conflicts_of_one_model(
    cli: Run, files: Path, args: tuple[str, ...], code: int, message: str
) -> None:
    """Before any work, which would fail for the pass that is not there."""
    before = snapshot(files)

    ended = cli("l.onnx", *args, "--pass", "nowhere:nothing")

    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(f"onnx-migrate: {message}")
    assert snapshot(files) == before


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("--json-lines", "w.bin"), 1, "would-overwrite: w.bin exists and is not a file of JSON lines"),
        (("--json-lines", "l.onnx"), 1, "would-overwrite: l.onnx exists and is not a file of JSON lines"),
        (("--html", "w.bin"), 1, "would-overwrite: w.bin exists and is not an HTML page"),
        (("--json-lines", "a", "--html", "./a"), 2, "usage: a and ./a are the same file"),
        (("--json-lines", "c.toml", "--config", "c.toml"), 2, "usage: c.toml is given twice"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_conflicts_of_a_batch(cli: Run, files: Path, args: tuple[str, ...], code: int, message: str) -> None:
    before = snapshot(files)

    ended = cli("batch", "l.onnx", "--out-dir", "out", *args)

    assert ended.code == code
    assert ended.err.startswith(f"onnx-migrate: {message}")
    assert snapshot(files) == before


def test_conflicts_of_a_model_in_a_batch(process: Run, folder: Path) -> None:
    (folder / "out").mkdir()
    onnx.save(large(), "l.onnx", save_as_external_data=True, location="out/l.onnx", size_threshold=0)
    before = (folder / "out" / "l.onnx").read_bytes()

    ended = process("batch", "l.onnx", "--out-dir", "out", "--pass", "nowhere:nothing", *FAST)

    assert ended.code == 1
    assert (
        "onnx-migrate: would-overwrite: l.onnx: out/l.onnx is a file that the model is read from" in ended.err
    )
    assert (folder / "out" / "l.onnx").read_bytes() == before


@pytest.mark.long
def test_a_page_and_lines_of_an_earlier_run_are_replaced(process: Run, folder: Path) -> None:
    for _ in range(2):
        ended = process(
            "batch", "small.onnx", "--out-dir", "out", "--json-lines", "a.jsonl", "--html", "a.html", *FAST
        )
        assert (ended.code, ended.err) == (0, "")
        assert process("small.onnx", "o.onnx", "--html", "o.html", "--depfile", "o.d", *FAST).code == 0


def test_the_result_of_a_batch_does_not_become_its_page(process: Run, folder: Path) -> None:
    ended = process("batch", "small.onnx", "--out-dir", "out", "--html", "out/small.onnx", *FAST)

    assert ended.code == 1
    assert "no-such-folder" in ended.err
    (folder / "out").mkdir()
    ended = process("batch", "small.onnx", "--out-dir", "out", "--html", "out/small.onnx", *FAST)

    assert (ended.code, ended.err.startswith("onnx-migrate: usage: out/small.onnx is given twice")) == (
        2,
        True,
    )
    assert not (folder / "out" / "small.onnx").exists()
