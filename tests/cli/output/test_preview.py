"""`--check`, `--dry-run` and `--diff`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.running import FAST, Run, large, snapshot
from tests.support.paths import FIXTURES


def test_check_sets_the_exit_code_and_writes_nothing(process: Run, folder: Path) -> None:
    assert process("small.onnx", "out.onnx").code == 0
    before = snapshot(folder)

    legacy, migrated = process("small.onnx", "--check"), process("out.onnx", "--check")

    assert (legacy.code, legacy.err) == (1, "")
    assert "Resize-11 → Resize-13" in legacy.out
    assert (migrated.code, migrated.err) == (0, "")
    assert snapshot(folder) == before


@pytest.mark.parametrize("name", ["detector_opset9", "transformer_opset9", "speech_opset10", "unet_opset9"])
def test_a_migrated_model_passes_the_check(cli: Run, folder: Path, name: str) -> None:
    assert cli(FIXTURES / f"{name}.onnx", "out.onnx", "--no-verify").code == 0

    assert cli("out.onnx", "--check", "--no-verify").code == 0


def test_the_check_compares_weights(folder: Path) -> None:
    """The check looks at weights that stay outside the structure."""
    from onnx_migrate import files

    onnx.save(large(), folder / "a.onnx")
    other = large()
    values = np.arange(5000, dtype=np.float32)
    values[4999] = 0
    other.graph.initializer[-1].CopyFrom(numpy_helper.from_array(values, "k"))
    onnx.save(other, folder / "b.onnx")
    shutil.copy(folder / "a.onnx", folder / "d.onnx")
    a, b, d = (files.load(folder / f"{name}.onnx") for name in "abd")

    assert files.equal(a, d)
    assert not files.equal(a, b)


def test_check_reports_a_refusal(cli: Run, folder: Path) -> None:
    ended = cli("small.onnx", "--check", "--opset", "9", "--no-lower")

    assert ended.code == 1
    assert ended.err.startswith("onnx-migrate: downgrade: ")


def test_check_in_json(cli: Run, folder: Path) -> None:
    message = json.loads(cli("small.onnx", "--check", "--json", *FAST).out)

    assert (message["would_change"], message["output"]) == (True, None)


@pytest.mark.parametrize("target", [["out.onnx"], ["--in-place"], []], ids=str)
def test_a_dry_run_does_all_but_write(cli: Run, folder: Path, target: list[str]) -> None:
    before = snapshot(folder)

    ended = cli("small.onnx", *target, "--dry-run")

    assert (ended.code, ended.err) == (0, "")
    assert "verified: bit-identical" in ended.out
    assert snapshot(folder) == before
    assert cli("small.onnx", *target, "--dry-run", "--opset", "9", "--no-lower").code == 1


def test_the_diff_is_by_node(cli: Run, folder: Path) -> None:
    ended = cli("small.onnx", "out.onnx", "--diff", *FAST)

    assert ended.code == 0
    assert ended.out.splitlines() == [
        "--- small.onnx",
        "+++ out.onnx",
        "@@ model @@",
        "-IR version 6",
        "+IR version 8",
        "-opset ai.onnx 11",
        "+opset ai.onnx 17",
        "@@ graph @@",
        "-weight roi: float[8] [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]",
        " y = Resize",
        "-  inputs (c, roi, scales)",
        '+  inputs (c, "", scales)',
    ]
    assert (folder / "out.onnx").exists()
    assert cli("out.onnx", "--check", "--diff", *FAST).out == ""


def test_the_diff_in_json(cli: Run, folder: Path) -> None:
    message = json.loads(cli("small.onnx", "--dry-run", "--diff", "--json", *FAST).out)

    assert message["outcome"] == "migrated"
    assert message["diff"][-1] == {
        "body": "graph",
        "subject": "node y",
        "title": "y = Resize",
        "removed": ["inputs (c, roi, scales)"],
        "added": ['inputs (c, "", scales)'],
    }


def test_the_diff_of_in_place_is_from_the_replaced_model(cli: Run, folder: Path) -> None:
    expected = cli("small.onnx", "--dry-run", "--diff", *FAST).out.replace("+++ migrated", "+++ small.onnx")

    ended = cli("small.onnx", "--in-place", "--diff", *FAST)

    assert (ended.code, ended.out) == (0, expected)
    assert expected.startswith("--- small.onnx\n+++ small.onnx\n@@ model @@\n")


@pytest.mark.parametrize(
    "args",
    [
        ["--check", "--depfile", "x.d"],
        ["--in-place", "--depfile", "x.d"],
        ["-", "--depfile", "x.d"],
        ["--check", "a.onnx", "b.onnx"],
    ],
    ids=" ".join,
)
def test_contradicting_options_are_wrong_usage(cli: Run, folder: Path, args: list[str]) -> None:
    assert cli("small.onnx", *args).code == 2
    assert list(snapshot(folder)) == ["small.onnx"]
