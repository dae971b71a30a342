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
from onnx_migrate.rewrite.change_log import Note
from onnx_migrate.verdicts import (
    Comparison,
    DynamicProof,
    Element,
    FeedNote,
    Histogram,
    Kind,
    RoundedOutput,
    SizeCondition,
    Statement,
    Trial,
    Verdict,
)


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


def test_nodes_changed_for_one_reason_are_counted() -> None:
    nodes = " ".join(
        f"v{index} = Clip <max = 6.0> ({'x' if not index else f'v{index - 1}'})" for index in range(7)
    )
    report = migrated(model(nodes, "v6"))

    short, full = printed(report, target="out.onnx"), printed(report, everything=True)

    assert short[0] == "not verified: verification was turned off"
    assert short[1].endswith(" → out.onnx")
    assert short[2].startswith("  opset 9 → 17, IR 6 → 8, nodes 7, parameters 0 → 1, weights 0 B → 4 B, 0.")
    assert sum("Clip-6 → Clip-13 ×7" in line for line in short) == 1
    assert sum("added nodes" in line or "    v" in line for line in short) == 0
    assert short[-1] == "  -v shows every changed node and note; --html FILE writes a page"
    assert len(full) > len(short)
    assert sum("- max = 6" in line for line in full) == 7


def many(count: int) -> Report:
    """Return a report with so many changes, each for a reason of its own, and as many warnings."""
    report = migrated(model("y = Clip <max = 6.0> (x)", "y"))
    changes = tuple(report.changes[0]._replace(reason=f"reason {index}") for index in range(count))
    warnings = tuple(
        Note("test", f"w{index}", f"beware {index}", severity="warning") for index in range(count)
    )
    return replace(report, changes=changes, notes=warnings)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 30])
def test_a_report_is_at_most_fifteen_lines_below_the_verdict(count: int) -> None:
    lines = printed(many(count))
    assert len(lines) <= 16
    changes, warnings = (sum(word in line for line in lines) for word in ("reason ", "beware "))
    left = [line for line in lines if " more " in line]
    assert min(changes, warnings) >= min(count, 3)
    assert sum(int(line.split()[1]) for line in left) == 2 * count - changes - warnings


def test_changes_that_the_user_asked_for_come_first() -> None:
    report = migrated(model("y = Clip <max = 6.0> (x)", "y"))
    own = report.changes[0]._replace(pass_name="dynamic_dims", reason="asked for")
    lines = printed(replace(report, changes=(*report.changes, own)))
    assert "asked for" in lines[lines.index("changes") + 1]


def test_a_condition_on_sizes_is_above_the_changes() -> None:
    note = "the model does not run at H = 33; it does at 64 and 96, in steps of 32"
    conditions = tuple(SizeCondition(symbol, "a multiple of 32", note) for symbol in ("H", "W"))
    proof = DynamicProof(
        True, trials=(Trial((("H", 33),), "bad"), Trial((("H", 64),))), notes=(note,), conditions=conditions
    )
    lines = printed(replace(migrated(model("y = Relu (x)", "y")), dynamic=proof))
    assert lines[3:5] == [
        "  sizes: H and W: multiples of 32, tried 64",
        "  ran right at 1 combination of sizes: H = 64",
    ]
    assert not any("does not run" in line for line in lines)


def test_notes_of_one_kind_are_counted() -> None:
    notes = tuple(f"no input runs the branch {index}" for index in range(5))
    verdict = Verdict(Kind.VERIFIED, evaluator="onnxruntime", notes=(*notes, "another"))
    lines = printed(replace(migrated(model("y = Relu (x)", "y")), verification=verdict))
    assert [line for line in lines if line.startswith("note: ")] == [
        "note: no input runs the branch 0 (4 more of this kind)", "note: another",
    ]  # fmt: skip


def test_a_long_reason_is_cut_at_a_word_and_whole_in_the_long_report() -> None:
    report = migrated(model("y = Clip <max = 6.0> (x)", "y"))
    reason = "because " * 60
    report = replace(report, changes=(report.changes[0]._replace(reason=reason.strip()),))
    (short,) = [line for line in printed(report) if "because" in line]
    assert short.endswith("because …")
    assert len(short) < 260
    assert any(reason.strip() in line for line in printed(report, everything=True))


def test_an_opset_that_was_kept_says_how_to_change_it() -> None:
    proto = model("y = Relu (x)", "y")
    report = onnx_migrate.migrate(proto, dynamic_batch=True, simplify=False, verify=False).report
    assert printed(report)[2].startswith("  opset 9 (kept; --opset N changes it), IR 6, nodes 1,")


def test_a_terminal_gets_colours_and_a_pipe_none() -> None:
    stream = io.StringIO()
    report = migrated(model("y = Clip <max = 6.0> (x)", "y"))
    print_report(report, Console(file=stream, force_terminal=True, color_system="standard", width=200))
    assert "\x1b[" in stream.getvalue()
    assert not any("\x1b" in line for line in printed(report))


def test_removed_attributes_and_added_nodes_are_shown() -> None:
    lines = printed(migrated(model("y = Softmax <axis = 0> (x)", "y")), everything=True)

    assert any("added nodes: " in line and "Reshape" in line for line in lines)
    assert any(line.strip().startswith("+ axis = ") and "was 0" in line for line in lines)


def test_markup_in_names_is_printed_as_it_is() -> None:
    proto = model("y = Clip <max = 6.0> (x)", "y")
    proto.graph.node[0].name = "[bold]layer[/bold]"

    assert any("[bold]layer[/bold]" in line for line in printed(migrated(proto), everything=True))


def test_a_report_without_verification_says_so() -> None:
    assert "not verified: verification was turned off" in printed(migrated(model("y = Relu (x)", "y")))


def test_the_long_report_ends_with_the_command_and_the_versions() -> None:
    lines = printed(migrated(model("y = Relu (x)", "y")), everything=True)

    assert lines[-3] == "runtimes and versions"
    assert lines[-2].startswith("  onnx-migrate MODEL OUTPUT")
    assert lines[-1].startswith("  with onnx-migrate ")
    assert not any("onnx-migrate MODEL" in line for line in printed(migrated(model("y = Relu (x)", "y"))))


def told(verdict: Verdict, *, everything: bool = True) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=200)
    print_verdict(verdict, console, original="a.onnx", other="b.onnx", everything=everything)
    return stream.getvalue().splitlines()


def comparison(**more: Any) -> Comparison:
    near = Comparison("y", (2, 3), (2, 3), "float32", "float32", 0.5, 0.25, 1.0, elements=6, differing=5)
    return replace(near, **more)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"differing": 0}, "  y  float32 2×3  bit-identical"),
        ({}, "  y  float32 2×3  differs by up to 25 % of the largest value (limit 50 %)"),
        (
            {"largest_absolute": 0.0, "largest_relative": 0.0},
            "  y  float32 2×3  only the signs of zeros differ",
        ),
        ({"largest_relative": 0.0}, "  y  float32 2×3  differs by up to 0.5 (limit 1)"),
        ({"doubt": "rounding changes it"}, "  y  float32 2×3  rounding changes it"),
        (
            {"differing": 0, "left_out": 2},
            "  y  float32 2×3  bit-identical; 2 of 6 elements are not compared: they are undefined or unstable",
        ),
        ({"problem": "5 of 6 elements differ"}, "  y  float32 2×3  5 of 6 elements differ"),
        ({"shape_after": (), "differing": 0}, "  y  float32 scalar  bit-identical"),
    ],
)
def test_an_output_of_a_verdict_is_one_line(more: dict[str, Any], line: str) -> None:
    feeds = (FeedNote("normal", 0, ()), FeedNote("wide", 0, ()))
    verdict = Verdict(Kind.VERIFIED, evaluator="onnxruntime", feeds=feeds, comparisons=(comparison(**more),))

    verified, head, setting, output = told(verdict)
    assert head == "  b.onnx compared with a.onnx"
    assert verified.startswith("verified: ")
    assert setting == "  run with onnxruntime, inputs: normal, wide"
    assert output == line


def test_the_headline_says_what_stood_in_for_the_original() -> None:
    verdict = Verdict(
        Kind.VERIFIED, evaluator="onnxruntime", stand_ins=("fixed numbers stood in for random ones",)
    )

    assert told(verdict)[0] == "verified: bit-identical; fixed numbers stood in for random ones"


def test_a_mismatch_has_its_place_and_a_histogram() -> None:
    wrong = comparison(
        problem="3 of 6 elements differ",
        largest_at=Element((1, 2), 0.5, 0.75),
        histogram=Histogram((0.01, 0.1, 1.0), (1, 2), equal=3),
    )
    verdict = Verdict(Kind.DIFFERS, "output 'y': 3 of 6 elements differ", comparisons=(wrong,))

    assert told(verdict)[2:] == [
        "  y  float32 2×3  3 of 6 elements differ",
        "    differs at [1, 2] 0.5 became 0.75",
        "      equal           3  ####################",
        "      1e-02 to 1e-01  1  #######",
        "      1e-01 to 1e+00  2  ##############",
    ]


def test_a_short_verdict_lists_the_outputs_that_differ_most() -> None:
    outputs = tuple(
        comparison(output=f"y{index}", largest_relative=index / 10, largest_absolute=index / 10, allowed=1.0)
        for index in range(1, 8)
    )
    same = comparison(output="same", differing=0, largest_absolute=0.0, largest_relative=0.0)
    wrong = comparison(output="bad", problem="NaN became 0", histogram=Histogram((0.1, 1.0), (2,)))
    feeds = (FeedNote("normal", 0, ()),)
    verdict = Verdict(
        Kind.DIFFERS, "output 'bad': NaN became 0", evaluator="onnxruntime 1", feeds=feeds,
        comparisons=(same, *outputs, wrong),
    )  # fmt: skip
    lines = told(verdict, everything=False)
    assert lines[2] == "  compared 9 outputs on 1 set of inputs in onnxruntime 1"
    assert [line.split()[0] for line in lines[3:8]] == ["y7", "y6", "y5", "y4", "y3"], (
        "the headline says what is bad"
    )
    assert lines[8:] == ["  and 2 more outputs with other bits"]


def test_a_verdict_on_other_numbers_is_short_and_has_a_line_for_each_claim() -> None:
    claims = (
        Statement("conversion", "bit-identical"),
        Statement("float16", "within the limit: output 'y' differs by 0.4 %"),
    )
    verdict = Verdict(
        Kind.VERIFIED, evaluator="onnxruntime", statements=claims, stand_ins=("a model stood in",)
    )
    lines = told(verdict, everything=False)
    assert lines[0] == "verified: conversion bit-identical, float16 within the limit"
    assert lines[2:] == [
        "  float16: within the limit: output 'y' differs by 0.4 %",
        "  compared in onnxruntime",
    ]
    assert told(verdict)[2:6] == [
        "  run with onnxruntime", "  conversion: bit-identical", "  float16: within the limit: output 'y' differs by 0.4 %",
        "  a model stood in",
    ]  # fmt: skip


def test_the_limit_of_a_verdict_is_named_only_where_the_user_gave_it() -> None:
    near = comparison(problem="", largest_relative=0.004)
    given = Verdict(Kind.VERIFIED, evaluator="onnxruntime", comparisons=(near,), given_tolerance=True)
    assert told(given)[0].startswith("verified: within the limit that you gave (")
    by_type = replace(given, rounded=(RoundedOutput("y", 0.004, 0.005, type="float16"),))
    assert told(by_type)[0].startswith("verified: within the error of float16 rounding (")
    assert told(replace(given, given_tolerance=False))[0].startswith("verified: within rounding (")
