"""Inspections as text, and where a model runs as a page and as a table."""

from __future__ import annotations

import io

import onnx
import onnx.parser
from rich.console import Console

from onnx_migrate import files
from onnx_migrate.cli.output.inspection_view import (
    print_advice,
    print_inspection,
    print_outlooks,
    print_overview,
)
from onnx_migrate.compatibility import CompatibilityChecker
from onnx_migrate.inspection import Inspection, inspect
from onnx_migrate.standard.ir_versions import minimal_ir_version
from onnx_migrate.standard.targets import resolve, shipped
from tests.harness import model
from tests.support.targets import targets_of


def inspected(nodes: str, result: str = "y", opset: int = 9) -> Inspection:
    ir_version = max(6, minimal_ir_version(opset))
    text = f'<ir_version: {ir_version}, opset_import: ["": {opset}]> g (float[2,3] x) => (float[2,3] {result}) {{ {nodes} }}'
    return inspect(onnx.parser.parse_model(text))


def lines(item: Inspection, *, everything: bool = False) -> list[str]:
    stream = io.StringIO()
    print_inspection(item, Console(file=stream, width=200), everything=everything)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_equal_changes_share_a_line_without_verbose() -> None:
    nodes = " ".join(
        f"v{index} = Clip <max = 6.0> ({'x' if not index else f'v{index - 1}'})" for index in range(12)
    )
    item = inspected(nodes, "v11")

    assert "to opset 17: 12 nodes changed, 1 note" in lines(item)
    assert sum("  Clip-6 → Clip-13 ×12: " in line for line in lines(item)) == 1
    assert sum(" (Clip-6 → Clip-13): " in line for line in lines(item, everything=True)) == 12


def test_a_change_of_one_node_names_it() -> None:
    item = inspected("y = Clip <max = 6.0> (x)")

    assert any(line.startswith("  'y' (Clip-6 → Clip-13): ") for line in lines(item))


def test_a_refusal_has_its_code_and_the_opsets_it_excludes() -> None:
    found = lines(inspected('y = ATen <operator = "where"> (x, x)'))

    assert any(line.startswith("to opset 17+: refused, no-equal: 'y' (ATen-9 → 10): ") for line in found)
    assert "reachable: opset 7 to 9" in found
    assert any(line.startswith(f"  not 10 to {onnx.defs.onnx_opset_version()}: no-equal: ") for line in found)


def test_an_overview_has_a_row_for_each_model_and_its_target() -> None:
    old, new = inspected("y = Clip <max = 6.0> (x)"), inspected("y = Relu (x)", opset=19)
    stream = io.StringIO()

    print_overview([old, new], Console(file=stream, width=200), to="to 17+")

    head, first, second = (" ".join(line.split()) for line in stream.getvalue().splitlines())
    assert head == "model opset IR nodes weights reachable to 17+"
    assert first.endswith("17: 1 node changed, 1 note")
    assert second.endswith("19: nothing changes")


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

    assert lines[1] == "for TensorRT 8.5: runs after a migration (by its documentation, not tested by us)"
    assert "    'first' (LayerNormalization): TensorRT 8.5 has no LayerNormalization; 1 more node" in lines
    assert any(line.startswith("    LayerNormalization-17 → ") and line.endswith("×2") for line in lines)


def test_nothing_to_say() -> None:
    assert page("onnxruntime==1.14")[1:] == ["for ONNX Runtime 1.14: runs unchanged (tested by us)"]


def test_operators_that_are_not_known_are_named() -> None:
    unknown = (
        "the opset fits, but we do not know whether it supports LayerNormalization as the model uses them (2 of 2 nodes)."
        " Please test the result there"
    )

    assert page("vitis-ai")[1:] == [f"for Vitis AI: {unknown}"]
    after = page("hailo")
    assert page("rknn-toolkit==1.7.5")[1].startswith(
        "for RKNN-Toolkit 1.7.5: after a migration the opset fits, but we do not know whether it supports "
    )
    assert after[1:] == [f"for Hailo Dataflow Compiler: {unknown}"]


def test_the_table_has_those_that_take_the_model_first() -> None:
    stream = io.StringIO()
    (chip,) = targets_of('title = "Chip"\noperators = "listed"\n[[release]]\n[[operator]]\nnames = ["Relu"]')
    checker = CompatibilityChecker(files.load(model(TEXT)))
    found = [checker.outlook(chip.table), checker.outlook(shipped("tensorrt"))]
    print_outlooks(found, Console(file=stream, width=300))
    head, *rows = stream.getvalue().splitlines()

    assert head.split("  ")[0] == "runtime"
    assert [row.split("  ")[0] for row in rows] == ["TensorRT", "Chip"]
    assert "8.6 and on" in rows[0]
    assert "no" in rows[1]
