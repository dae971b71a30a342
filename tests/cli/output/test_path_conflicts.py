"""Files that a command reads, and files of another kind, are not overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.running import FAST, Run, large, snapshot


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
