"""The options that `migrate` and `batch` share."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from onnx_migrate.cli.app import app
from tests.cli.running import FAST, Run


def test_both_commands_have_the_same_options_in_one_order() -> None:
    names = [[item.name for item in app.commands[command].params] for command in ("migrate", "batch")]

    shared = [[name for name in own if name in set(names[0]) & set(names[1])] for own in names]
    own = {"in_place", "check", "timeout", "memory_limit", "html", "config", "trust_config", "quiet"}
    assert [name for name in shared[0] if name not in own] == [name for name in shared[1] if name not in own]
    assert {"opset", "dynamic", "simplify", "verify", "resize_form", "rtol", "without"} <= set(shared[0])


@pytest.mark.parametrize(
    "args", [["--opset", "17", "--opset", "ai.onnx.ml=3"], ["--opset", "17,ai.onnx.ml=3"]], ids=str
)
def test_opset_may_be_repeated(cli: Run, folder: Path, args: list[str]) -> None:
    text = """<ir_version: 4, opset_import: ["": 9, "ai.onnx.ml": 1]>
    g (float[N] x) => (float[N] y) { y = ai.onnx.ml.Binarizer<threshold = 0.5> (x) }"""
    onnx.save(onnx.parser.parse_model(text), "ml.onnx")

    assert cli("ml.onnx", "out.onnx", *args, *FAST).code == 0
    assert {item.domain: item.version for item in onnx.load(folder / "out.onnx").opset_import} == {
        "": 17,
        "ai.onnx.ml": 3,
    }


def test_the_options_that_differ_have_help_of_their_own() -> None:
    texts = {
        command: {item.name: getattr(item, "help", None) for item in app.commands[command].params}
        for command in ("migrate", "batch")
    }

    assert texts["migrate"]["timeout"] != texts["batch"]["timeout"]
    assert all(
        text
        for own in texts.values()
        for name, text in own.items()
        if name not in ("model", "output", "sources")
    )
