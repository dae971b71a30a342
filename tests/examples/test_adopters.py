"""The examples for other people's tools run in these, where they are installed."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest

from tests.examples.test_examples import run, work
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, import_or_skip

__all__ = ["work"]

FOLDER = ROOT / "examples" / "adopters"


@pytest.mark.parametrize(
    ("script", "packages", "arguments", "printed"),
    [
        ("torch_exporter.py", ("torch", "onnxscript"), (), "opset 11"),
        ("model_optimizer_quantize.py", ("modelopt",), ("models/small.onnx", "out.onnx"), "opset 19"),
        ("iree_import.py", ("iree.compiler",), ("models/large.onnx", "out.mlir"), ""),
        ("olive_conversion.py", ("olive",), ("models/small.onnx", "out.onnx", "9"), "opset 9"),
    ],
)
def test_an_adopter_calls_it(
    work: Path, script: str, packages: tuple[str, ...], arguments: tuple[str, ...], printed: str
) -> None:
    for package in packages:
        import_or_skip(package, Elsewhere.BY_HAND)

    assert printed in run(work, sys.executable, FOLDER / script, *arguments)

    if script == "iree_import.py":
        assert "torch.onnx_meta.opset_version = 17" in (work / "out.mlir").read_text()
        weights = onnx.load(work / "out.mlir.onnx", load_external_data=False).graph.initializer
        assert [weight.name for weight in weights if weight.external_data] == ["k"]
