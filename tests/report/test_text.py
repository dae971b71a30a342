"""The report as text."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import onnx.parser
import pytest
from rich.console import Console

import onnx_migrate
from onnx_migrate.report import Report
from onnx_migrate.report.text import print_report, print_verdict
from onnx_migrate.verdicts import Comparison, Element, FeedNote, Histogram, Kind, Verdict


def model(nodes: str, result: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f'<ir_version: 6, opset_import: ["": 9]> g (float[2,3] x) => (float[2,3] {result}) {{ {nodes} }}'
    )


def migrated(proto: onnx.ModelProto) -> Report:
    return onnx_migrate.migrate(proto, simplify=False, verify=False).report


def printed(report: Report, **options: Any) -> list[str]:
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=200), **options)
    return stream.getvalue().splitlines()


def test_nodes_changed_for_one_reason_are_counted_and_shortened() -> None:
    nodes = " ".join(
        f"v{index} = Clip <max = 6.0> ({'x' if not index else f'v{index - 1}'})" for index in range(7)
    )
    report = migrated(model(nodes, "v6"))

    short, full = printed(report, target="out.onnx"), printed(report, everything=True)

    assert short[1].startswith("opset 9 → 17, IR 6 → 8, nodes 7")
    assert sum("Clip-6 → Clip-13 ×7" in line for line in short) == 1
    assert "    … and 2 more (--verbose shows them)" in short
    assert not any("--verbose" in line for line in full)
    assert len(full) > len(short)


def test_removed_attributes_and_added_nodes_are_shown() -> None:
    lines = printed(migrated(model("y = Softmax <axis = 0> (x)", "y")))

    assert any("added nodes: " in line and "Reshape" in line for line in lines)
    assert any(line.strip().startswith("+ axis = ") and "was 0" in line for line in lines)


def test_markup_in_names_is_printed_as_it_is() -> None:
    proto = model("y = Clip <max = 6.0> (x)", "y")
    proto.graph.node[0].name = "[bold]layer[/bold]"

    assert any("[bold]layer[/bold]" in line for line in printed(migrated(proto)))


def test_a_report_without_verification_says_so() -> None:
    assert "not verified: verification was turned off" in printed(migrated(model("y = Relu (x)", "y")))


def test_a_report_ends_with_what_was_asked_for() -> None:
    lines = printed(migrated(model("y = Relu (x)", "y")))

    assert lines[-3] == "asked for"
    assert lines[-2].startswith("  onnx-migrate MODEL OUTPUT")
    assert lines[-1].startswith("  with onnx-migrate ")


def told(verdict: Verdict) -> list[str]:
    stream = io.StringIO()
    print_verdict(verdict, Console(file=stream, width=200), original="a.onnx", other="b.onnx")
    return stream.getvalue().splitlines()


def comparison(**more: Any) -> Comparison:
    near = Comparison("y", (2, 3), (2, 3), "float32", "float32", 0.5, 0.25, 1.0, elements=6, differing=5)
    return replace(near, **more)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"differing": 0}, "  y  float32 2×3  bit-identical"),
        ({}, "  y  float32 2×3  differs by up to 0.5, 0.2 of the largest value; 1 is allowed"),
        ({"doubt": "rounding changes it"}, "  y  float32 2×3  rounding changes it"),
        (
            {"differing": 0, "left_out": 2},
            "  y  float32 2×3  bit-identical; 2 of 6 elements are undefined or unstable, and left out",
        ),
        ({"problem": "5 of 6 elements differ"}, "  y  float32 2×3  5 of 6 elements differ"),
        ({"shape_after": (), "differing": 0}, "  y  float32 scalar  bit-identical"),
    ],
)
def test_an_output_of_a_verdict_is_one_line(more: dict[str, Any], line: str) -> None:
    feeds = (FeedNote("normal", 0, ()), FeedNote("wide", 0, ()))
    verdict = Verdict(Kind.VERIFIED, evaluator="onnxruntime", feeds=feeds, comparisons=(comparison(**more),))

    head, _, verified, setting, output = told(verdict)
    assert head == "b.onnx compared with a.onnx"
    assert verified.startswith("verified: ")
    assert setting == "  run with onnxruntime, inputs: normal, wide"
    assert output == line


def test_the_headline_says_what_stood_in_for_the_original() -> None:
    verdict = Verdict(
        Kind.VERIFIED, evaluator="onnxruntime", stand_ins=("fixed numbers stood in for random ones",)
    )

    assert told(verdict)[2] == "verified: bit-identical; fixed numbers stood in for random ones"


def test_a_mismatch_has_its_place_and_a_histogram() -> None:
    wrong = comparison(
        problem="3 of 6 elements differ",
        largest_at=Element((1, 2), 0.5, 0.75),
        histogram=Histogram((0.01, 0.1, 1.0), (1, 2), equal=3),
    )
    verdict = Verdict(Kind.DIFFERS, "output 'y': 3 of 6 elements differ", comparisons=(wrong,))

    assert told(verdict)[3:] == [
        "  y  float32 2×3  3 of 6 elements differ",
        "    differs at [1, 2] 0.5 became 0.75",
        "      equal           3  ####################",
        "      1e-02 to 1e-01  1  #######",
        "      1e-01 to 1e+00  2  ##############",
    ]
