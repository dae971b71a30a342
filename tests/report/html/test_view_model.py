"""The contents of a page as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnx_migrate.report.html.render import model_page
from onnx_migrate.report.html.view_model import Fact, ModelPage, Note, Port, Row, anchor
from tests.report.html.pages import needs_browser, opened
from tests.support.browser import Browser


def side(opset: int, *, ml: int | None = None, nodes: int = 2000) -> dict[str, Any]:
    return {
        "opset": opset,
        "ir_version": 8,
        "opset_imports": {"": opset, **({} if ml is None else {"ai.onnx.ml": ml})},
        "nodes": nodes,
        "inputs": [{"name": "x", "type": "float", "shape": [1, None, "H"]}],
        "outputs": [{"name": "y", "type": "float", "shape": None}],
    }


def report(before: dict[str, Any], after: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "m.onnx", "outcome": "migrated", "before": before, "after": after, "changes": [], **more}


def page(entry: dict[str, Any]) -> ModelPage:
    return ModelPage.of(entry, listed=10)


def test_facts_mark_figures_that_changed() -> None:
    sizes = {"before": 1, "after": 1}
    facts = page(report(side(11, ml=1), side(17, ml=3, nodes=900), file_bytes=sizes)).facts

    assert facts == (
        Fact("opset", "11 → 17", new=True),
        Fact("ai.onnx.ml", "1 → 3", new=True),
        Fact("IR version", "8"),
        Fact("nodes", "2,000 → 900", new=True),
        Fact("file", "1 B"),
        Fact("changed nodes", "0"),
    )
    assert "ai.onnx.ml" not in [fact.label for fact in page(report(side(11, ml=1), side(17, ml=1))).facts]


def test_inputs_and_outputs_have_shapes_before_and_after() -> None:
    assert page(report(side(11), side(17))).ports == (
        Port("input", "x", "float", "[1, ?, H]", "[1, ?, H]"),
        Port("output", "y", "float", "any shape", "any shape"),
    )


def test_runs_in_other_runtimes_are_notes() -> None:
    proof = {
        "runtime": "tract 1",
        "outcome": "right",
        "passed": True,
        "text": "the result is right",
        "notes": ["a note"],
    }
    proofs = [
        proof,
        {**proof, "outcome": "alike"},
        {**proof, "outcome": "worse", "passed": False, "notes": []},
    ]
    found = page(report(side(11), side(17), proved_in=proofs)).proved_in

    assert found == (
        Note("good", "tract 1: the result is right. a note"),
        Note("warning", "tract 1: the result is right. a note"),
        Note("failed", "tract 1: the result is right"),
    )
    assert page(report(side(11), side(17))).proved_in == ()
    assert "Run in other runtimes" in model_page(report(side(11), side(17), proved_in=proofs))


def test_runs_at_other_sizes_are_notes() -> None:
    trials = [{"sizes": [["N", 2], ["H", 8]], "problem": ""}, {"sizes": [["N", 3]], "problem": "fails"}]
    found = page(report(side(11), side(17), dynamic={"trials": trials, "notes": ["a note"]})).trials

    assert found == (
        Note("good", "N=2, H=8: runs, and the outputs have the declared shapes"),
        Note("failed", "N=3: fails"),
        Note("info", "a note"),
    )


def test_the_row_of_a_model_migrated_by_an_earlier_run() -> None:
    row = Row.of({"model": "m.onnx", "outcome": "migrated", "cached": True, "total_seconds": 0.5})

    assert row == Row(anchor("m.onnx"), "m.onnx", "migrated", "", "", "", 0.5, "done by an earlier run")


def test_anchors_are_distinct_html_ids_for_any_name() -> None:
    names = ["a.onnx", "b.onnx", "x y\"'.onnx", "\udcff.onnx"]

    assert len(set(map(anchor, names))) == len(names)
    assert all(anchor(name).isalnum() for name in names)


def test_a_page_shows_the_whole_report(report: dict[str, Any]) -> None:
    page = model_page({**report, "file_bytes": {"before": 1, "after": 2}})

    for change in report["changes"]:
        assert change["node"] in page
        for side in (change["before"], change["after"]):
            assert all(f">{name}<" in page for name in (*side["attributes"], *filter(None, side["outputs"])))
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
    chromium: Browser, refused: dict[str, Any], tmp_path: Path
) -> None:
    tab = opened(chromium, model_page(refused), tmp_path)

    words = tab.run("document.querySelector('.failure').innerText")
    for text in (
        "no-equal",
        "'gate' (ATen-9 → 10)",
        "names a function of PyTorch",
        "operator_export_type=ONNX",
        "v",
        "y",
    ):
        assert text in words
    assert tab.run("document.querySelector('.blocked > b').innerText") == "ATen 9 cannot be migrated"
    assert "Nodes changed before the failure" in tab.run("document.body.innerText")
    assert tab.run("document.querySelectorAll('.group').length") == 2, "what had been changed"
