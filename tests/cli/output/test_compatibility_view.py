"""Compatibility on runtimes as a page and as a table."""

from __future__ import annotations

import io

from rich.console import Console

from onnx_migrate import files
from onnx_migrate.cli.output.compatibility_view import print_advice, print_outlooks
from onnx_migrate.compatibility import CompatibilityChecker, outlooks
from onnx_migrate.standard.targets import resolve, shipped
from tests.harness import model
from tests.support.targets import targets_of

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) <float[3] s = {1., 1., 1.}> {
  [first] a = LayerNormalization <axis = 1> (x, s) [second] y = LayerNormalization <axis = 1> (a, s) }"""


def page(runtime: str) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=300)
    (target,) = resolve([runtime])
    advice = CompatibilityChecker(files.load(model(TEXT))).advise(target)
    print_advice(advice, lambda text: console.print(text, highlight=False, soft_wrap=True))
    return stream.getvalue().splitlines()


def test_a_page() -> None:
    lines = page("tensorrt==8.5")

    assert lines[1] == "for TensorRT 8.5 (read, not measured): runs after migration"
    assert "    'first' (LayerNormalization): TensorRT 8.5 has no LayerNormalization; 1 more node" in lines
    assert any(line.startswith("    LayerNormalization-17 → ") and line.endswith("×2") for line in lines)


def test_nothing_to_say() -> None:
    assert page("onnxruntime==1.14")[1:] == ["for ONNX Runtime 1.14 (measured): runs as it is"]


def test_the_table_has_those_that_take_the_model_first() -> None:
    stream = io.StringIO()
    (chip,) = targets_of('title = "Chip"\noperators = "listed"\n[[release]]\n[[operator]]\nnames = ["Relu"]')
    found = outlooks(CompatibilityChecker(files.load(model(TEXT))), [chip.table, shipped("tensorrt")])
    print_outlooks(found, Console(file=stream, width=300))
    head, *rows = stream.getvalue().splitlines()

    assert head.split("  ")[0] == "runtime"
    assert [row.split("  ")[0] for row in rows] == ["TensorRT", "Chip"]
    assert "8.6 and on" in rows[0]
    assert "no" in rows[1]
