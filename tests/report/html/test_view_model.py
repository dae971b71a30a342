"""The contents of a page as values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx_migrate.model.interface import Port
from onnx_migrate.report import ModelSummary, Report
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.html.render import model_page, model_part
from onnx_migrate.report.html.view_model import Fact, ModelPage, Note, Row, anchor
from onnx_migrate.report.html.view_model import Port as ShownPort
from onnx_migrate.verdicts import DynamicProof, RuntimeProof, Side, Trial
from tests.report.html.pages import needs_browser, opened
from tests.support.browser import Browser


def side(opset: int, *, ml: int | None = None, nodes: int = 2000) -> ModelSummary:
    imports = (("", opset), *(() if ml is None else (("ai.onnx.ml", ml),)))
    inputs, outputs = (Port("x", "float", (1, None, "H")),), (Port("y", "float", None),)
    return ModelSummary(opset, 8, imports, nodes, inputs, outputs)


def made(before: ModelSummary, after: ModelSummary, **more: Any) -> Report:
    return replace(Report("m.onnx", before, after, (), (), ()), **more)


def page(report: Report) -> ModelPage:
    return ModelPage.of(report, listed=10)


def test_facts_mark_figures_that_changed() -> None:
    facts = page(made(side(11, ml=1), side(17, ml=3, nodes=900), file_bytes=(1, 1))).facts

    assert facts == (
        Fact("opset", "11 → 17", new=True),
        Fact("ai.onnx.ml", "1 → 3", new=True),
        Fact("IR version", "8"),
        Fact("nodes", "2,000 → 900", new=True),
        Fact("weights", "0 B"),
        Fact("file", "1 B"),
        Fact("changed nodes", "0"),
    )
    assert "ai.onnx.ml" not in [fact.label for fact in page(made(side(11, ml=1), side(17, ml=1))).facts]


def test_inputs_and_outputs_have_shapes_before_and_after() -> None:
    assert page(made(side(11), side(17))).ports == (
        ShownPort("input", "x", "float", "[1, ?, H]", "[1, ?, H]"),
        ShownPort("output", "y", "float", "any shape", "any shape"),
    )


def test_runs_in_other_runtimes_are_notes() -> None:
    proof = RuntimeProof("tract", "tract 1", "right", Side(), notes=("a note",))
    proofs = (proof, replace(proof, outcome="alike"), replace(proof, outcome="worse", notes=()))
    found = page(made(side(11), side(17), proved_in=proofs)).proved_in

    assert found == (
        Note("good", f"tract 1: {proofs[0].text}. a note"),
        Note("warning", f"tract 1: {proofs[1].text}. a note"),
        Note("failed", f"tract 1: {proofs[2].text}"),
    )
    assert page(made(side(11), side(17))).proved_in == ()
    assert "Run in other runtimes" in model_page(made(side(11), side(17), proved_in=proofs))


def test_runs_at_other_sizes_are_notes() -> None:
    trials = (Trial((("N", 2), ("H", 8))), Trial((("N", 3),), "fails"))
    found = page(
        made(side(11), side(17), dynamic=DynamicProof(True, trials=trials, notes=("a note",)))
    ).trials

    assert found == (
        Note("good", "N=2, H=8: runs, and the outputs have the declared shapes"),
        Note("failed", "N=3: fails"),
        Note("info", "a note"),
    )


def test_a_model_migrated_by_an_earlier_run() -> None:
    row = Row.of(None, "m.onnx", "migrated", status="verified", seconds=0.5)

    assert row == Row(
        anchor("m.onnx"), "m.onnx", "migrated", "verified", "", "", 0.5, "done by an earlier run"
    )
    assert "An earlier run migrated this model" in model_part(None, "m.onnx", "migrated", "o.onnx")


def test_operators_that_changed_come_first(report: Report) -> None:
    shown = ModelPage.of(report, listed=1)

    assert shown.changed_operators
    assert all(row.changed for row in shown.changed_operators)
    assert not any(row.changed for row in shown.other_operators)
    assert {*shown.changed_operators, *shown.other_operators} == set(report.operators)
    whole = model_page(report)
    assert whole.index("<h2>Operators</h2>") < whole.index("<h2>Interface</h2>")
    assert ">Pad-2 → 13 <span" in whole
    assert "<h2>Operators</h2>" not in model_page(made(side(11), side(17)))


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
