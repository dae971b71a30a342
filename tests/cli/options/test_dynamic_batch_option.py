"""`--dynamic-batch` with and without a name, and before a path."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, Run


def first_dims(path: Path) -> list[int | str]:
    (value,) = onnx.load(path).graph.input
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--dynamic-batch", "small.onnx", "out.onnx"], "N"),
        (["--dynamic-batch=items", "small.onnx", "out.onnx"], "items"),
        (["small.onnx", "--dynamic-batch", "out.onnx"], "N"),
        (["small.onnx", "--dynamic-batch=items", "out.onnx"], "items"),
        (["small.onnx", "out.onnx", "--dynamic-batch"], "N"),
        (["small.onnx", "out.onnx", "--dynamic-batch=items"], "items"),
        (["small.onnx", "--dynamic-batch", "-o", "out.onnx"], "N"),
        (["--dynamic-batch", "--", "small.onnx", "out.onnx"], "N"),
        (["model", "out.onnx", "--dynamic-batch"], "N"),
        (["--dynamic-batch", "model", "out.onnx"], "N"),
        (["batch", "--dynamic-batch", "models", "--out-dir", "."], "N"),
        (["batch", "models", "--dynamic-batch", "--out-dir", "."], "N"),
        (["batch", "--dynamic-batch=items", "models", "--out-dir", "."], "items"),
        (["batch", "--out-dir", ".", "--dynamic-batch", "models"], "N"),
    ],
    ids=" ".join,
)
def test_the_option_may_precede_or_follow_paths(cli: Run, folder: Path, words: list[str], name: str) -> None:
    (folder / "models").mkdir()
    shutil.copy("small.onnx", "models/out.onnx")
    shutil.copy("small.onnx", "model")

    ended = cli(*words, *FAST) if "--" not in words else cli(*FAST, *words)

    assert (ended.code, ended.err) == (0, "")
    assert first_dims(folder / "out.onnx") == [name, 3, 8, 8]


@pytest.mark.parametrize(
    "words",
    [
        ["small.onnx", "out.onnx", "--dynamic-batch", "items"],
        ["small.onnx", "--dynamic-batch", "items"],
        ["batch", "small.onnx", "--dynamic-batch", "items", "--out-dir", "out"],
    ],
    ids=" ".join,
)
def test_a_name_without_an_equals_sign_is_wrong_usage(cli: Run, folder: Path, words: list[str]) -> None:
    ended = cli(*words)

    assert (ended.code, ended.out) == (2, "")
    assert "write --dynamic-batch=items for a name, ./items for a path" in ended.err
    assert [path.name for path in folder.iterdir()] == ["small.onnx"]


@pytest.mark.parametrize("command", ["migrate", "batch"])
def test_the_help_shows_the_equals_sign(cli: Run, command: str) -> None:
    assert "--dynamic-batch =NAME" in cli(command, "--help").out
