"""What a report says on the precision, as text, JSON and a page."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.precision.report import PrecisionReport

import onnx_migrate
from onnx_migrate.reported import sections
from onnx_migrate.verdicts.ranges import NodeRange, NumberRanges
from tests.harness import model

RANGES, CHANGE = sections(PrecisionReport)
ROWS = (
    NodeRange("a", "Mul", 1.0, 2.0**-24, False),
    NodeRange("b", "Pow", 1e9, 65504.0, True),
    NodeRange("c", "Sub", 0.0, 0.0, False),
)


def test_a_bar_lies_where_its_numbers_do_beside_the_limits_of_the_type() -> None:
    assert RANGES.page is not None
    bars = RANGES.page(NumberRanges("float16", 65504.0, 2.0**-24, ROWS))["bars"]
    by_node = {node.node: (left, left + width, kind) for node, left, width, kind in bars}

    assert [node.node for node, *_ in bars] == ["b", "a", "c"], "the largest numbers come first"
    assert by_node["b"][1:] == (100, "failed")
    # Both limits are as far from the ends.
    assert by_node["a"][0] == pytest.approx(100 - by_node["b"][0], abs=0.2)
    assert by_node["a"][2] == "good"
    assert by_node["c"][:2] == (0, 0.5)


def test_nodes_that_keep_their_type_are_marked_in_the_graph() -> None:
    assert RANGES.outline is not None
    outline = RANGES.outline(NumberRanges("float16", 65504.0, 2.0**-24, ROWS))

    assert outline.nodes == {"b"}
    assert outline.legend == "Nodes that do not compute in float16 have a yellow border."


def test_all_forms_of_the_report_show_a_node_that_keeps_its_type() -> None:
    net = model("17 (float[4] x) => (float[4] y) { big = Exp (x) a = Log (big) y = Mul (a, a) }")
    migration = onnx_migrate.migrate(net, precision="fp16", keep_fp32=["Exp"])
    report, page = migration.report, migration.html()

    assert report.precision is not None
    assert report.ranges is not None
    assert "Exp" in [node.operator for node in report.precision.kept]
    line = next(iter(report.precision.node_lines))
    assert CHANGE.title in report.text(verbose=True)
    assert line in report.text(verbose=True)
    assert report.as_dict()["precision"]["kept"][0]["operator"] == "Exp"
    assert "<h2>Numbers of nodes</h2>" in page
    assert "<h2>Nodes and weights that keep their type</h2>" in page
    assert "Nodes that do not compute in float16 have a yellow border." in page
