"""What a page says of a report in words and figures, and that it shows the whole report."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onnx_migrate
from onnx_migrate.model.interface import Port
from onnx_migrate.report import ModelSummary, Report
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.html.contents import (
    Row,
    anchor,
    bars,
    facts,
    feed_text,
    ports,
    proof_notes,
    shape_text,
    size_notes,
    state_of,
    trial_notes,
    trials_text,
    verdict_text,
)
from onnx_migrate.report.html.render import model_page, model_part
from onnx_migrate.rewrite.change_log import Note
from onnx_migrate.verdicts import (
    Comparison,
    DynamicProof,
    Element,
    FeedNote,
    Histogram,
    Kind,
    RuntimeProof,
    Side,
    Trial,
    Verdict,
)
from tests.report.html.pages import needs_browser, opened
from tests.support.browser import Browser

VERDICT = Verdict(Kind.VERIFIED, "", "onnxruntime 1.31.1", notes=("a note",))
COMPARISON = Comparison(
    "y", (2, 3), (2, 3), "float32", "float32", 0.00012345, 0.1, 0.001, elements=6, differing=2
)


def side(opset: int, *, ml: int | None = None, nodes: int = 2000) -> ModelSummary:
    imports = (("", opset), *(() if ml is None else (("ai.onnx.ml", ml),)))
    inputs, outputs = (Port("x", "float", (1, None, "H")),), (Port("y", "float", None),)
    return ModelSummary(opset, 8, imports, nodes, inputs, outputs)


def made(before: ModelSummary, after: ModelSummary, **more: Any) -> Report:
    return replace(Report("m.onnx", before, after, (), (), ()), **more)


def compared(**more: Any) -> str:
    """Return the page of a report whose verification compared one output."""
    verdict = replace(VERDICT, comparisons=(replace(COMPARISON, **more),))
    return model_page(made(side(11), side(17), verification=verdict))


def test_facts_mark_figures_that_changed() -> None:
    assert list(facts(made(side(11, ml=1), side(17, ml=3, nodes=900), file_bytes=(1, 1)))) == [
        ("opset", "11 → 17", True),
        ("ai.onnx.ml", "1 → 3", True),
        ("IR version", "8", False),
        ("nodes", "2,000 → 900", True),
        ("weights", "0 B", False),
        ("file", "1 B", False),
    ]
    assert "ai.onnx.ml" not in [label for label, _, _ in facts(made(side(11, ml=1), side(17, ml=1)))]


def test_inputs_and_outputs_have_shapes_before_and_after() -> None:
    (_, x, now), (_, y, _) = found = ports(side(11), side(17))
    page = model_page(made(side(11), side(17)))

    assert [(what, old.name, old.kind) for what, old, _ in found] == [
        ("input", "x", "float"),
        ("output", "y", "float"),
    ]
    assert (shape_text(x.shape), now, shape_text(y.shape)) == ("[1, ?, H]", x, "any shape")
    assert shape_text([]) == "[]"
    assert page.count(">float [1, ?, H]</td>") == page.count(">float any shape</td>") == 1
    assert page.count(">unchanged</span>") == 2


def test_runs_in_other_runtimes_are_notes() -> None:
    proof = RuntimeProof("tract", "tract 1", "right", Side(), notes=("a note",))
    proofs = (proof, replace(proof, outcome="alike"), replace(proof, outcome="worse", notes=()))

    assert proof_notes(proofs) == [
        ("good", f"tract 1: {proofs[0].text}. a note"),
        ("warning", f"tract 1: {proofs[1].text}. a note"),
        ("failed", f"tract 1: {proofs[2].text}"),
    ]
    assert "Run in other runtimes" in model_page(made(side(11), side(17), proved_in=proofs))
    assert "Run in other runtimes" not in model_page(made(side(11), side(17)))


def test_runs_at_other_sizes_are_notes() -> None:
    trials = (Trial((("N", 2), ("H", 8))), Trial((("N", 3),), "fails"))
    proof = DynamicProof(True, trials=trials, notes=("a note",))

    assert trial_notes(proof) == [
        ("good", "N=2, H=8: runs, and the outputs have the declared shapes"),
        ("failed", "N=3: fails"),
    ]
    assert size_notes(proof) == [("info", "a note")]
    assert trials_text(proof) == "2 runs, 1 at sizes that do not fit"
    assert '<li class="failed">N=3: fails</li>' in model_page(made(side(11), side(17), dynamic=proof))


def test_a_model_migrated_by_an_earlier_run() -> None:
    row = Row.of(None, "m.onnx", "migrated", status="verified", seconds=0.5)

    assert row == Row(
        anchor("m.onnx"), "m.onnx", "migrated", "verified", "", "", 0.5, "done by an earlier run"
    )
    assert "An earlier run migrated this model" in model_part(None, "m.onnx", "migrated", "o.onnx")


def test_operators_that_changed_come_first(report: Report) -> None:
    page = model_page(report)
    places = {row.changed: [] for row in report.operators}
    for row in report.operators:
        places[row.changed].append(page.replace("<wbr>", "").index(f'<td class="mono">{row.operator}<'))

    assert max(places[True]) < min(places[False])
    assert page.index(">Operators</h2>") < page.index(">Inputs and outputs</h2>")
    assert "<td>Pad-2 → 13</td>" in page
    assert ">Operators</h2>" not in model_page(made(side(11), side(17)))


def test_anchors_are_distinct_html_ids_for_any_name() -> None:
    names = ["a.onnx", "b.onnx", "x y\"'.onnx", "\udcff.onnx"]

    assert len(set(map(anchor, names))) == len(names)
    assert all(anchor(name).isalnum() for name in names)


def test_a_page_shows_the_whole_report(report: Report) -> None:
    page = model_page(replace(report, file_bytes=(1, 2)))

    for change in report.changes:
        assert change.where.node in page
        for node, attributes in zip((change.before, change.after), change.attributes, strict=True):
            assert node is not None
            assert all(f">{name}<" in page for name in (*attributes, *filter(None, node.output)))
    for text in (
        "9 → 17",
        "1 B → 2 B",
        "[N, 3, 30, 32]",
        "bit-identical",
        "N=2",
        "IR version 4 became 8",
        "seed 0: image [1, 3, 30, 32]",
    ):
        assert text in page


@pytest.mark.long
@needs_browser
def test_a_refusal_shows_the_node_that_cannot_be_migrated(
    chromium: Browser, refused: Failure, tmp_path: Path
) -> None:
    tab = opened(chromium, model_page(refused), tmp_path)

    words = tab.run("document.querySelector('.failure').innerText")
    for text in (
        "no-equal",
        "'gate' (ATen-9 → 10)",
        "calls a function of PyTorch's C++ library by name",
        "operator_export_type=ONNX",
        "v",
        "y",
    ):
        assert text in words
    assert tab.run("document.querySelector('.blocked > b').innerText") == "ATen 9 cannot be migrated"
    assert "Nodes changed before the failure" in tab.run("document.body.innerText")
    assert tab.run("document.querySelectorAll('.group').length") == 2, "what had been changed"


def test_the_verdict_names_the_evaluator_the_inputs_and_its_grade() -> None:
    feed = FeedNote("normal", 0, (("x", (1, 2)), ("z", None)))
    page = model_page(made(side(11), side(17), verification=replace(VERDICT, feeds=(feed,))))

    assert verdict_text(VERDICT) == "bit-identical; run with onnxruntime 1.31.1"
    assert verdict_text(replace(VERDICT, own_rounding=True)).startswith("within rounding")
    assert verdict_text(Verdict(Kind.UNVERIFIED, "no inputs")) == "no inputs"
    assert feed_text(feed) == "normal, seed 0: x [1, 2], z any shape"
    assert f'<b class="verified">verified</b> {verdict_text(VERDICT)}, inputs: normal</p>' in page
    assert f"<li>{feed_text(feed)}</li>" in page
    assert "<li>a note</li>" in page


@pytest.mark.parametrize(
    ("more", "grade", "text"),
    [
        ({"differing": 0}, "same", "bit-identical"),
        ({}, "near", "equal within the tolerance"),
        ({"problem": "5 of 6 differ"}, "differs", "5 of 6 differ"),
    ],
)
def test_an_output_is_graded(more: dict[str, Any], grade: str, text: str) -> None:
    page = compared(**more)

    assert f'<span class="{grade}">{text}</span>' in page
    for figure in ("0.000123", "0.001", f"{more.get('differing', 2)} of 6"):
        assert f">{figure}</td>" in page
    assert 'class="bars"' not in page


def test_an_output_without_elements_has_no_figures() -> None:
    page = compared(elements=0, shape_after=(0,))

    assert ">float32 [0]</td>" in page
    assert page.count('"></td>') == 3


def test_a_difference_shows_its_outputs() -> None:
    error = onnx_migrate.VerificationFailed("output 'y' differs")
    finding = Comparison(
        "y", (6,), (6,), "float32", "float32", math.inf, elements=6, differing=5, problem="5 of 6 differ"
    )
    error.verification = Verdict(Kind.DIFFERS, comparisons=(finding,))

    page = model_page(Failure.of("m.onnx", error))

    assert '<span class="differs">5 of 6 differ</span>' in page
    assert ">inf<" in page


def test_a_histogram_is_a_row_of_bars() -> None:
    histogram = Histogram((1e-3, 1e-2, 1e-1), (4, 1), equal=2)
    page = compared(problem="differs", histogram=histogram, largest_at=Element((0, 1), 1.0, 1.05))

    assert bars(histogram) == [(50, "equal: 2"), (100, "1e-03 to 1e-02: 4"), (25, "1e-02 to 1e-01: 1")]
    assert '<div class="dim">at [0, 1] 1 became 1.05</div>' in page
    assert 'aria-label="elements by difference: equal: 2; 1e-03 to 1e-02: 4; 1e-02 to 1e-01: 1"' in page
    assert '<i title="equal: 2" style="height: 50%"></i>' in page
    assert ">elements by difference: equal … 1e-02 to 1e-01<" in page
    assert bars(None) == []


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (None, "migrated"),
        (VERDICT, "migrated"),
        (Verdict(Kind.UNVERIFIED, "no inputs"), "unverified"),
        (Verdict(Kind.UNVERIFIED, "not done", timed_out=True), "timed-out"),
    ],
)
def test_a_result_that_is_not_proved_has_a_status_of_its_own(verdict: Verdict | None, state: str) -> None:
    report = made(side(11), side(17), verification=verdict)
    page = model_page(report)

    assert state_of(report) == state
    assert f'<span class="badge {state}">{state}</span>' in page
    doubt = "of the result with the original ran out of time" in page or "could not be compared" in page
    assert doubt == (state != "migrated")


def test_the_row_of_an_unverified_model_says_why() -> None:
    report = made(side(11), side(17), verification=Verdict(Kind.UNVERIFIED, "no inputs"))
    row = Row.of(report, "m.onnx", "unverified", status="unverified", why="no inputs", seconds=1.0)
    assert (row.state, row.verified, row.reason) == ("unverified", "unverified", "no inputs")


def test_a_warning_comes_first_and_once() -> None:
    notes = (Note("p", "a", "an info"), Note("p", "b", "a warning", severity="warning"))
    page = model_page(replace(made(side(11), side(17)), notes=notes))
    assert page.count("a warning") == page.count("an info") == 1
    assert page.index("a warning") < page.index("Changed nodes") < page.index("an info")


def test_the_row_of_a_failed_model_says_what_to_do() -> None:
    error = onnx_migrate.LoadError("the file ends too early", hint="copy it again")
    row = Row.of(Failure.of("a.onnx", error), "a.onnx", "failed", status="", seconds=0.1)

    assert "the file ends too early" in row.reason
    assert row.reason.endswith("copy it again)")
