"""The table of operators: numbers before and after, and the step and pass that changed each."""

from __future__ import annotations

import onnx
import pytest

import onnx_migrate
from onnx_migrate.report.operator_table import OperatorRow, OperatorStep, operator_table, table_lines
from onnx_migrate.report.report import Report
from tests.harness import model

UPSAMPLE = """<ir_version: 4, opset_import: ["":9]> g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] s = {1., 1., 2., 2.}> {
  a = Relu(x)  b = Identity(a)  c = Identity(b)  d = Clip <max = 6.0> (c)  y = Upsample <mode = "nearest"> (d, s)
}"""


def rows(report: Report) -> dict[str, OperatorRow]:
    return {row.operator: row for row in report.operators}


def reported(proto: onnx.ModelProto, **options: object) -> Report:
    return onnx_migrate.migrate(proto, verify=False, **options).report  # type: ignore[arg-type]


def without_a_relu(proto: onnx.ModelProto) -> None:
    """A user's pass that logs nothing."""
    first, second = proto.graph.node[:2]
    second.input[0] = first.input[0]
    del proto.graph.node[0]


def test_rewrites_and_passes_are_named_with_what_they_did() -> None:
    found = rows(reported(model(UPSAMPLE)))

    assert (found["Identity"].before, found["Identity"].after) == (2, 0)
    assert [(step.pass_name, step.step, step.difference) for step in found["Identity"].steps] == [
        ("simplify", "", -2)
    ]
    assert found["Upsample"].steps == (OperatorStep("migrate_opset", "Upsample-9 → Resize-13", -1, 1),)
    assert found["Resize"].steps == (OperatorStep("migrate_opset", "Upsample-9 → Resize-13", 1, 1),)
    assert found["Clip"] == OperatorRow("Clip", 1, 1, (OperatorStep("migrate_opset", "Clip-6 → 13", 0, 1),))
    assert found["Relu"] == OperatorRow("Relu", 1, 1)


def test_a_pass_that_logs_nothing_is_named_too() -> None:
    found = rows(reported(model(UPSAMPLE), passes=[without_a_relu], simplify=False))

    assert found["Relu"] == OperatorRow("Relu", 1, 0, (OperatorStep("without_a_relu", "", -1),))


def test_the_differences_of_the_steps_add_up() -> None:
    for row in reported(model(UPSAMPLE), passes=[without_a_relu]).operators:
        assert sum(step.difference for step in row.steps) == row.after - row.before, row


def test_a_pass_that_was_left_out_did_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a simplification that the verification rejects are not in the table."""
    import onnxsim

    def wrong(proto: onnx.ModelProto, **options: object) -> tuple[onnx.ModelProto, bool]:
        proto.graph.node[0].op_type = "Abs"
        proto.graph.node[0].name = "other"
        return proto, True

    monkeypatch.setattr(onnxsim, "simplify", wrong)
    report = onnx_migrate.migrate(model(UPSAMPLE), isolated=False).report

    assert any(note.code == "left-out" for note in report.notes)
    assert "Abs" not in rows(report)
    assert not any(step.pass_name == "simplify" for row in report.operators for step in row.steps)


def test_lines_are_aligned_and_others_are_counted() -> None:
    table = (
        OperatorRow("Constant", 12, 3, (OperatorStep("cleanup", "", -4), OperatorStep("simplify", "", -5))),
        OperatorRow("Conv", 1200, 1200),
        OperatorRow("Relu", 1, 1),
        OperatorRow("Resize", 2, 2, (OperatorStep("migrate_opset", "Resize-11 → 13", 0, 2),)),
    )

    assert list(table_lines(table)) == [
        "operators   before   after",
        "  Constant      12       3  cleanup (-4), simplify (-5)",
        "  Resize         2       2  Resize-11 → 13",
        "  2 other operators unchanged",
    ]
    assert list(table_lines(table, everything=True))[2] == "  Conv       1,200   1,200"
    assert list(table_lines(table[1:3])) == []


def test_many_steps_are_counted() -> None:
    steps = tuple(OperatorStep("fit", f"A-{n} → {n + 1}", 0, 1) for n in range(5))

    (_, line) = table_lines((OperatorRow("A", 5, 5, steps),))

    assert line.endswith("A-0 → 1, A-1 → 2, A-2 → 3 and 2 more steps")


def test_what_is_unexplained_is_the_work_of_the_pass_and_the_table_is_sorted() -> None:
    from onnx_migrate.rewrite.operator_counts import PassEffect

    table = operator_table({"Z": 2, "A": 1}, {"Z": 1, "A": 1}, (), [PassEffect("p", (("Z", -1),), 0, 0)])

    assert table == (OperatorRow("A", 1, 1), OperatorRow("Z", 2, 1, (OperatorStep("p", "", -1),)))


def test_steps_in_words_have_their_differences_where_several_changed_the_number() -> None:
    row = OperatorRow(
        "Constant", 2000, 1998, (OperatorStep("simplify", "", -1), OperatorStep("cleanup", "", -1))
    )
    assert (row.words, row.changed) == ("simplify (-1), cleanup (-1)", True)
    rewritten = OperatorRow("Resize", 2, 2, (OperatorStep("migrate_opset", "Resize-11 → 13", 0, 2),))
    assert (rewritten.words, rewritten.changed) == ("Resize-11 → 13", True)
    assert not OperatorRow("Conv", 3, 3).changed
