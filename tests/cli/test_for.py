"""`--for RUNTIME==VERSION`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest

from tests.cli.running import FAST, Run


def opset(path: Path) -> int:
    return int(onnx.load(path).opset_import[0].version)


@pytest.mark.parametrize(
    ("runtime", "expected"), [("onnxruntime==1.14", 18), ("tensorrt==8.6", 17), ("onnxruntime==1.9", 15)]
)
def test_the_opset_is_the_newest_it_takes(cli: Run, folder: Path, runtime: str, expected: int) -> None:
    assert cli("small.onnx", "out.onnx", "--for", runtime, *FAST).code == 0
    assert opset(folder / "out.onnx") == expected


def test_a_newer_ir_version_is_refused(cli: Run, folder: Path) -> None:
    proto = onnx.load(folder / "small.onnx")
    proto.ir_version = 10
    onnx.save(proto, folder / "new.onnx")

    ended = cli("new.onnx", "out.onnx", "--for", "onnxruntime==1.14", *FAST)

    assert ended.code == 1
    assert ended.err.startswith("onnx-migrate: runtime-ir: ")


def test_batch_and_inspect_know_it(process: Run, folder: Path) -> None:
    args = ("batch", "small.onnx", "--out-dir", "out", "--for", "onnxruntime==1.14", "--resume", *FAST)
    assert process(*args).code == 0
    assert opset(folder / "out" / "small.onnx") == 18
    assert "1 of them by an earlier run" in process(*args).out
    (entry,) = json.loads(process("inspect", "small.onnx", "--for", "tensorrt==9.0", "--json").out)
    assert entry["target"] == "19"


def test_the_line_counts_before_the_file(cli: Run, folder: Path) -> None:
    (folder / "onnx-migrate.toml").write_text("for = 'onnxruntime==1.14'\n", encoding="utf-8")
    shutil.copy("small.onnx", "again.onnx")

    assert cli("small.onnx", "out.onnx", *FAST).code == 0
    assert opset(folder / "out.onnx") == 18
    assert cli("small.onnx", "out.onnx", "--opset", "15", *FAST).code == 0
    assert opset(folder / "out.onnx") == 15
    assert cli("small.onnx", "out.onnx", "--for", "tensorrt==9.0", *FAST).code == 0
    assert opset(folder / "out.onnx") == 19


@pytest.mark.parametrize(
    "args",
    [["--for", "abacus==1"], ["--for", "onnxruntime==0.1"], ["--for", "onnxruntime==1.14", "--opset", "17"]],
    ids=str,
)
def test_wrong_usage(cli: Run, folder: Path, args: list[str]) -> None:
    ended = cli("small.onnx", "out.onnx", *args)

    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert not (folder / "out.onnx").exists()
