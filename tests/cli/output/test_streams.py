"""`-` as a path is stdin or stdout."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, Raw, large, leftovers, snapshot


def test_pipes_and_files_have_the_same_bytes(raw: Raw, folder: Path) -> None:
    onnx.save(large(), folder / "large.onnx")
    for name in ("small.onnx", "large.onnx"):
        data = (folder / name).read_bytes()
        assert raw(name, "out.onnx").returncode == 0

        done = raw("-", "-", input=data)

        assert done.returncode == 0, done.stderr
        assert done.stdout == (folder / "out.onnx").read_bytes()
        assert done.stderr.decode().startswith("<stdin> → -\nopset 11 → 17")
    assert not leftovers(folder)


def test_json_goes_to_stderr_when_the_model_goes_to_stdout(raw: Raw, folder: Path) -> None:
    done = raw("small.onnx", "-", "--json", *FAST)

    assert json.loads(done.stderr)["output"] == "-"
    assert onnx.load_from_string(done.stdout).opset_import[0].version == 17


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"cut"], ids=["empty", "html", "cut"])
def test_bad_bytes_are_one_line_and_an_empty_stdout(raw: Raw, folder: Path, data: bytes) -> None:
    if data == b"cut":
        data = (folder / "small.onnx").read_bytes()[:-20]

    done = raw("-", "-", input=data)

    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.count(b"\n") == 1
    assert b": <stdin> is " in done.stderr


def test_a_refusal_leaves_stdout_empty(raw: Raw, folder: Path) -> None:
    done = raw("small.onnx", "-", "--opset", "9", "--no-lower")

    assert (done.returncode, done.stdout) == (1, b"")
    assert list(snapshot(folder)) == ["small.onnx"]


def test_stdin_cannot_be_replaced(raw: Raw, folder: Path) -> None:
    for args in (("-", "--in-place"), ("small.onnx", "-", "--save-as-external-data")):
        assert raw(*args).returncode == 2
