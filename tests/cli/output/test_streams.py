"""`-` as a path is stdin or stdout."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, large, leftovers, snapshot


def pipe(command: list[str], folder: Path, environment: dict[str, str], data: bytes, *args: str):  # type: ignore[no-untyped-def]
    return subprocess.run(
        [*command, *args], cwd=folder, env=environment, input=data, capture_output=True, timeout=120
    )


def test_pipes_and_files_have_the_same_bytes(
    command: list[str], folder: Path, environment: dict[str, str]
) -> None:
    onnx.save(large(), folder / "large.onnx")
    for name in ("small.onnx", "large.onnx"):
        data = (folder / name).read_bytes()
        assert pipe(command, folder, environment, b"", name, "out.onnx").returncode == 0

        done = pipe(command, folder, environment, data, "-", "-")

        assert done.returncode == 0, done.stderr
        assert done.stdout == (folder / "out.onnx").read_bytes()
        assert done.stderr.decode().startswith("<stdin> → -\nopset 11 → 17")
    assert not leftovers(folder)


def test_json_goes_to_stderr_when_the_model_goes_to_stdout(
    command: list[str], folder: Path, environment: dict[str, str]
) -> None:
    done = pipe(command, folder, environment, b"", "small.onnx", "-", "--json", *FAST)

    assert json.loads(done.stderr)["output"] == "-"
    assert onnx.load_from_string(done.stdout).opset_import[0].version == 17


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"cut"], ids=["empty", "html", "cut"])
def test_bad_bytes_are_one_line_and_an_empty_stdout(
    command: list[str], folder: Path, environment: dict[str, str], data: bytes
) -> None:
    if data == b"cut":
        data = (folder / "small.onnx").read_bytes()[:-20]

    done = pipe(command, folder, environment, data, "-", "-")

    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.count(b"\n") == 1
    assert b": <stdin> is " in done.stderr


def test_a_refusal_leaves_stdout_empty(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = pipe(command, folder, environment, b"", "small.onnx", "-", "--opset", "9", "--no-lower")

    assert (done.returncode, done.stdout) == (1, b"")
    assert list(snapshot(folder)) == ["small.onnx"]


def test_stdin_cannot_be_replaced(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    for args in (("-", "--in-place"), ("small.onnx", "-", "--save-as-external-data")):
        assert pipe(command, folder, environment, b"", *args).returncode == 2
