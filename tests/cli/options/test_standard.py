"""`--to-onnx-ops`, with a domain and without, at any place among the arguments."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.cli.conftest import Run

GELU = '<ir_version: 8, opset_import: ["com.microsoft": 1]> g (float[2,8] x) => (float[2,8] y) { y = com.microsoft.Gelu (x) }'


@pytest.mark.parametrize(
    "words",
    [["--to-onnx-ops"], ["--to-onnx-ops", "com.microsoft"], ["--to-onnx-ops=com.microsoft"]],
    ids=" ".join,
)
@pytest.mark.parametrize("first", [True, False])
def test_operators_of_another_domain_are_written(
    folder: Path, cli: Run, words: list[str], first: bool
) -> None:
    onnx.save(parser.parse_model(GELU), folder / "m.onnx")
    files = [str(folder / "m.onnx"), str(folder / "o.onnx")]
    ended = cli(*(words + files if first else files + words), "-v")
    assert ended.code == 0, ended
    again = "--to-onnx-ops=com.microsoft" if "com.microsoft" in " ".join(words) else "--to-onnx-ops"
    assert f"OUTPUT {again}\n" in ended.out.replace(files[1], "OUTPUT"), ended.out
    assert {node.domain for node in onnx.load(folder / "o.onnx").graph.node} == {""}
