"""The report as a value and as JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError

import onnx
import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate import Migration
from onnx_migrate.report.data import INEXACT, ModelSummary
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.verdicts import Verdict

MODEL = """<ir_version: 6, opset_import: ["": 9, "com.acme": 3]>
g (float[N,3] x) => (float[N,3] y) <float[1] k = {2.0}> {
  t = Clip <min = 0.0, max = 6.0> (x)
  y = Mul (t, k)
}"""


FOLDED = MODEL.replace("t = Clip", "c = Mul (k, k)  t = Clip").replace("Mul (t, k)", "Mul (t, c)")


def migrated(text: str = MODEL) -> Migration:
    return onnx_migrate.migrate(onnx.parser.parse_model(text), simplify=False, verify=False)


def test_a_summary_has_opsets_and_the_interface() -> None:
    summary = ModelSummary.of(onnx.parser.parse_model(MODEL))

    assert (summary.opset, summary.ir_version, summary.nodes) == (9, 6, 2)
    assert summary.opset_imports == (("", 9), ("com.acme", 3))
    assert [(port.name, port.shape) for port in (*summary.inputs, *summary.outputs)] == [
        ("x", ("N", 3)),
        ("y", ("N", 3)),
    ]


def test_a_change_has_both_nodes_the_constants_and_the_pass() -> None:
    report = migrated().report.as_dict()

    (change,) = report["changes"]
    assert (change["pass"], change["scope"], change["exactness"]) == ("migrate_opset", "graph", "exact")
    assert change["before"]["attributes"] == {"max": "6", "min": "0"}
    assert (change["before"]["version"], change["after"]["version"]) == (6, 13)
    assert [change["constants"][name]["value"] for name in change["after"]["inputs"][1:]] == ["0", "6"]
    assert json.loads(json.dumps(report)) == report


def test_notes_have_all_their_fields() -> None:
    report = migrated().report.as_dict()

    (note,) = [note for note in report["notes"] if note["code"] == "ir-version"]
    assert list(note) == ["step", "code", "message", "subject", "severity"]
    assert (note["step"], note["severity"]) == ("migrate_opset", "info")


def test_a_model_at_its_target_is_unchanged() -> None:
    result = migrated()
    again = onnx_migrate.migrate(result.model, simplify=False, verify=False)

    assert (result.report.outcome, again.report.outcome) == ("migrated", "unchanged")


def test_a_model_of_which_only_notes_are_written_is_unchanged() -> None:
    once = migrated(FOLDED).model
    once.graph.input.add().CopyFrom(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.FLOAT, [1]))

    report = onnx_migrate.migrate(once, verify=False).report

    assert "left-out" in [note.code for note in report.notes]
    assert report.outcome == "unchanged"


def test_every_exactness_has_a_text() -> None:
    assert set(INEXACT) == {item.value for item in Exactness}
    assert [key for key, text in INEXACT.items() if not text] == ["exact"]


def test_what_the_simplifier_did_is_a_table_of_operators() -> None:
    simplified = onnx_migrate.migrate(onnx.parser.parse_model(FOLDED), verify=False).report.as_dict()
    unsimplified = migrated(FOLDED).report.as_dict()

    assert simplified["simplified"] == {
        "before": {"Clip": 1, "Mul": 2},
        "after": {"Clip": 1, "Mul": 1},
        "done": [{"kind": "folded", "operator": "Mul", "into": "", "nodes": 1}],
    }
    assert "folded 1 node into constants (Mul 1)" in [note["message"] for note in simplified["notes"]]
    assert unsimplified["simplified"] is None


def test_a_report_is_typed_and_says_whether_the_result_is_verified() -> None:
    source = onnx.parser.parse_model(MODEL.replace(', "com.acme": 3', ""))
    proved = onnx_migrate.migrate(source, isolated=False, simplify=False).report
    unproved = onnx_migrate.migrate(source, verify=False, simplify=False).report

    assert isinstance(proved.verification, Verdict)
    assert (proved.verified, proved.verification.grade) == (True, "bit-identical")
    assert (unproved.verified, unproved.verification) == (False, None)
    with pytest.raises(FrozenInstanceError):
        proved.verification.reason = "other"  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(proved)) == proved


def test_a_report_is_json_text_and_a_page() -> None:
    report = migrated().report

    assert json.loads(report.json()) == report.as_dict()
    assert "\n" not in report.json(indent=None)
    assert "Clip-6 → Clip-13: " in report.text()
    assert "\x1b" not in report.text()
    assert report.html().startswith("<!DOCTYPE html>")
    assert "Clip" in report.html()


def test_text_shows_every_node_only_if_asked() -> None:
    nodes = " ".join(f"v{at} = Clip <max = 6.0> ({f'v{at - 1}' if at else 'x'})" for at in range(7))
    text = f'<ir_version: 6, opset_import: ["": 9]> g (float[2] x) => (float[2] v6) {{ {nodes} }}'
    report = migrated(text).report

    assert ("Clip-13 ×7" in report.text(), "v3" in report.text(), "v3" in report.text(verbose=True)) == (
        True,
        False,
        True,
    )
