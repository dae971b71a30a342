"""--dynamic-batch, with and without a name and before a path, and --fix."""

from __future__ import annotations

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
        (["small.onnx", "out.onnx", "--dynamic-batch"], "N"),
        (["small.onnx", "out.onnx", "--dynamic-batch", "batch"], "batch"),
        (["small.onnx", "--dynamic-batch=items", "out.onnx"], "items"),
        (["small.onnx", "--dynamic-batch", "-o", "out.onnx"], "N"),
    ],
)
def test_the_batch(process: Run, folder: Path, words: list[str], name: str) -> None:
    ended = process(*words, *FAST)

    assert (ended.code, ended.err) == (0, "")
    assert first_dims(folder / "out.onnx") == [name, 3, 8, 8]


def test_there_and_back(process: Run, folder: Path) -> None:
    process("small.onnx", "open.onnx", "--dynamic", "x:N,3,H,W", *FAST)

    ended = process("open.onnx", "out.onnx", "--fix", "N=1", "--fix", "x:1,3,8,8", *FAST)

    assert (ended.code, ended.err) == (0, "")
    assert first_dims(folder / "out.onnx") == [1, 3, 8, 8]
    assert process("open.onnx", "wrong.onnx", "--fix", "K=1", *FAST).code == 2
    assert not (folder / "wrong.onnx").exists()
