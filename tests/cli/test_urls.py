"""URLs on the command line, in a file system that all processes see: `shelf://`, a folder of this machine."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, Run, large, leftovers, snapshot

SHELF = """
import os

from fsspec.implementations.local import LocalFileSystem


class Shelf(LocalFileSystem):
    protocol = "shelf"

    @classmethod
    def _strip_protocol(cls, path):
        if path.startswith("shelf://"):
            path = os.path.join(os.environ["SHELF"], path[len("shelf://"):])
        return path.rstrip("/")
"""


@pytest.fixture
def shelf(folder: Path, environment: dict[str, str]) -> Path:
    """A folder that is shelf:// to processes: fsspec finds it as it finds the packages of other protocols."""
    installed = folder.parent / "installed"
    (installed / "shelf-1.0.dist-info").mkdir(parents=True)
    (installed / "shelf.py").write_text(SHELF, encoding="utf-8")
    (installed / "shelf-1.0.dist-info" / "METADATA").write_text(
        "Name: shelf\nVersion: 1.0\n", encoding="utf-8"
    )
    (installed / "shelf-1.0.dist-info" / "entry_points.txt").write_text(
        "[fsspec.specs]\nshelf = shelf.Shelf\n", encoding="utf-8"
    )
    found = folder.parent / "shelf"
    (found / "in" / "deep").mkdir(parents=True)
    environment["PYTHONPATH"] += f"{os.pathsep}{installed}"
    environment["SHELF"] = str(found)
    shutil.copy(folder / "small.onnx", found / "in" / "small.onnx")
    onnx.save(
        large(),
        found / "in" / "deep" / "large.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
    )
    return found


def test_a_model_from_a_url_to_a_url(process: Run, folder: Path, shelf: Path) -> None:
    ended = process("shelf://in/small.onnx", "shelf://out/a.onnx", "--json")
    local = process("small.onnx", "a.onnx", "--json")

    assert (ended.code, ended.err) == (0, "")
    report = json.loads(ended.out)
    assert (report["model"], report["output"]) == ("shelf://in/small.onnx", "shelf://out/a.onnx")
    assert report["changes"] == json.loads(local.out)["changes"]
    assert snapshot(shelf / "out") == {"a.onnx": (folder / "a.onnx").read_bytes()}
    assert not leftovers(folder)


def test_external_data_in_and_out(process: Run, folder: Path, shelf: Path) -> None:
    ended = process("shelf://in/deep/large.onnx", "shelf://out/b.onnx", "--save-as-external-data", *FAST)

    assert (ended.code, ended.err) == (0, "")
    data, name = sorted(snapshot(shelf / "out"), key=len, reverse=True)
    assert (name, data.startswith("b.onnx."), data.endswith(".data")) == ("b.onnx", True, True)
    process("shelf://out/b.onnx", "whole.onnx", *FAST)
    process(shelf / "in" / "deep" / "large.onnx", "direct.onnx", *FAST)
    assert (folder / "whole.onnx").read_bytes() == (folder / "direct.onnx").read_bytes()
    assert not leftovers(folder)


def test_check_diff_and_in_place(process: Run, folder: Path, shelf: Path) -> None:
    before = snapshot(shelf)
    assert process("shelf://in/small.onnx", "--check", *FAST).code == 1
    diff = process("shelf://in/small.onnx", "--dry-run", "--diff", *FAST)
    assert diff.out.startswith("--- shelf://in/small.onnx\n")
    refused = process("shelf://in/small.onnx", "shelf://in/small.onnx", *FAST)
    assert refused.err.startswith("onnx-migrate: in-place: shelf://in/small.onnx is the source model itself")
    assert snapshot(shelf) == before

    assert process("shelf://in/small.onnx", "--in-place", *FAST).code == 0
    assert process("shelf://in/small.onnx", "--check", *FAST).code == 0
    assert sorted(snapshot(shelf)) == sorted(before)
    assert not leftovers(folder)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (("shelf://in/none.onnx", "a.onnx"), 4, "no-such-file: shelf://in/none.onnx: no such file"),
        (("small.onnx", "https://host/a.onnx"), 1, "cannot-write: small.onnx: https://host/a.onnx: HTTP addresses can only"),
        (("shelf://in/none.onnx", "https://host/a.onnx"), 1, "https://host/a.onnx: HTTP addresses can only be read"),
        (("nonsense://a.onnx", "a.onnx"), 2, "usage: nonsense://a.onnx: Protocol not known"),
        (("file://host/a.onnx", "a.onnx"), 2, "usage: file://host/a.onnx names a file on the host 'host'"),
        (("shelf://in/small.onnx", "a.onnx", "--depfile", "a.d"), 2, "usage: --depfile needs files, not URLs"),
        (("small.onnx", "a.onnx", "--html", "shelf://a.html"), 2, "usage: small.onnx: --html needs a file, not a URL"),
        (("batch", "nonsense://in", "--out-dir", "out"), 2, "usage: nonsense://in: Protocol not known"),
        (("batch", "shelf://in", "--out-dir", "shelf://out", "--resume"), 2, "usage: shelf://out: --resume needs a journal"),
        (("batch", "shelf://in", "--out-dir", "shelf://in"), 2, "would overwrite one of the models"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_errors_are_one_line(
    process: Run, folder: Path, shelf: Path, args: tuple[str, ...], code: int, message: str
) -> None:
    before = snapshot(shelf), snapshot(folder)
    ended = process(*args, *FAST)

    assert ended.code == code
    (line,) = ended.err.splitlines()
    assert line.startswith("onnx-migrate: ")
    assert message in line
    assert (snapshot(shelf), snapshot(folder)) == before
    assert not leftovers(folder)


def test_a_file_url_is_a_path(process: Run, folder: Path) -> None:
    url = (folder / "small.onnx").as_uri()

    assert process(url, (folder / "a b.onnx").as_uri(), *FAST).code == 0
    assert (folder / "a b.onnx").exists()
    assert process(url, "small.onnx", *FAST).err.startswith("onnx-migrate: in-place: ")
    assert process("batch", folder.as_uri(), "--out-dir", (folder / "out").as_uri(), *FAST).code == 0
    assert sorted(snapshot(folder / "out")) == [".onnx-migrate.jsonl", "a b.onnx", "small.onnx"]


def test_a_batch_in_worker_processes(process: Run, folder: Path, shelf: Path) -> None:
    (shelf / "in" / "text.onnx").write_text("hello", encoding="utf-8")
    ended = process("batch", "shelf://in", "--out-dir", "shelf://out", "--jobs", "2", *FAST)
    local = process("batch", shelf / "in", "--out-dir", "out", "--jobs", "2", *FAST)

    assert (ended.code, local.code) == (1, 1)
    (line,) = ended.err.splitlines()
    assert line.startswith("onnx-migrate: not-onnx: shelf://in/text.onnx is not an ONNX model")
    expected = snapshot(folder / "out")
    del expected[".onnx-migrate.jsonl"]
    assert snapshot(shelf / "out") == expected
    assert sorted(expected) == ["deep/large.onnx", "small.onnx"]
    assert not leftovers(folder)


def test_a_pattern_with_a_configuration(process: Run, folder: Path, shelf: Path) -> None:
    (folder / "onnx-migrate.toml").write_text(
        '[[override]]\nfiles = ["shelf://in/deep/*"]\nopset = 13\n', encoding="utf-8"
    )
    ended = process("batch", "shelf://in/**/*.onnx", "--out-dir", "out", "--jobs", "1", *FAST)

    assert (ended.code, ended.err) == (0, "")
    assert onnx.load(folder / "out" / "deep" / "large.onnx").opset_import[0].version == 13
    assert onnx.load(folder / "out" / "small.onnx").opset_import[0].version == 17


def test_inspect_and_verify(process: Run, folder: Path, shelf: Path) -> None:
    ended = process("inspect", "shelf://in/deep/large.onnx", "--json")
    (entry,) = json.loads(ended.out)
    assert (entry["model"], entry["external_files"]) == ("shelf://in/deep/large.onnx", ["w.bin"])
    assert not entry["problems"]

    (shelf / "in" / "deep" / "w.bin").unlink()
    (entry,) = json.loads(process("inspect", "shelf://in/deep/large.onnx", "--json").out)
    assert "'w.bin', which does not exist" in entry["problems"][0]
    assert process("verify", "small.onnx", "shelf://in/small.onnx").code == 0
    assert not leftovers(folder)
