"""The files that checks read and `Reduction.save` writes: their form, and none replaces a file that the reduction read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnx_migrate
from onnx_migrate import SaveError
from tests.harness import model

NET = "17 (float[2,4] x) => (float[2,4] y) { a = Relu (x) b = Tanh (a) y = Neg (b) }"
CHECK = "grep -q Tanh {} && test -e {inputs} && exit 3; exit 0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, with two models and inputs in a file and in a folder."""
    monkeypatch.chdir(tmp_path)
    onnx.save(model(NET), "one.onnx")
    onnx.save(model(NET.replace("Tanh", "Sigmoid")), "two.onnx")
    onnx.save(model(NET.replace("Tanh", "Sigmoid")), "pair.other.onnx")
    os.mkdir("data")
    for path in ("own.npz", "data/0.npz"):
        np.savez(path, x=np.ones((2, 4), np.float32))
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("options", "target", "text"),
    [
        (
            {"check": CHECK, "input_data": "own.npz"},
            "own.onnx",
            "own.npz is a file that the inputs are read from",
        ),
        (
            {"check": CHECK, "input_data": "x=own.npz"},
            "own.onnx",
            "own.npz is a file that the inputs are read from",
        ),
        (
            {"check": CHECK, "input_data": "data"},
            "data/0.onnx",
            "0.npz is a file that the inputs are read from",
        ),
        ({"against": "two.onnx"}, "two.onnx", "two.onnx is a file that the model is read from"),
        (
            {"against": "pair.other.onnx"},
            "pair.onnx",
            "pair.other.onnx is a file that the model is read from",
        ),
    ],
    ids=["inputs", "named inputs", "folder of inputs", "second model", "beside the second model"],
)
def test_no_file_that_was_read_is_replaced(
    folder: Path, options: dict[str, Any], target: str, text: str
) -> None:
    result = onnx_migrate.reduce("one.onnx", isolated=False, **options)
    before = contents(folder)
    with pytest.raises(SaveError, match=text) as caught:
        result.save(folder / target)

    assert caught.value.code == "would-overwrite"
    assert contents(folder) == before
    assert result.save(folder / "new.onnx")[0] == str(folder / "new.onnx")


def test_texts_are_saved_as_numpy_reads_them_without_pickle(tmp_path: Path) -> None:
    check = f"test -e {{}} && {sys.executable} -c \"import numpy; exit('a b' == numpy.load('{{inputs}}')['t'][0])\""
    result = onnx_migrate.reduce(
        model("17 (string[1] t) => (string[1] y) { y = Identity (t) }"),
        check=check,
        check_exit="1",
        input_data={"t": np.array(["a b"], object)},
        isolated=False,
    )
    _, inputs = result.save(tmp_path / "small.onnx")

    with np.load(inputs, allow_pickle=False) as arrays:
        assert arrays["t"].tolist() == ["a b"]
