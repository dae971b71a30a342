"""The table of operators on a page."""

from __future__ import annotations

from typing import Any

from onnx_migrate.report.html.operator_view import OperatorLine, OperatorView
from onnx_migrate.report.html.render import model_page

STEP = {"pass": "migrate_opset", "step": "Resize-11 → 13", "difference": 0, "nodes": 2}
REST = {"pass": "simplify", "step": "", "difference": -1, "nodes": 0}
ROWS = [
    {"operator": "Conv", "before": 3, "after": 3, "steps": []},
    {"operator": "Constant", "before": 2000, "after": 1998, "steps": [REST, {**REST, "pass": "cleanup"}]},
    {"operator": "Resize", "before": 2, "after": 2, "steps": [STEP]},
]


def test_operators_that_changed_come_first() -> None:
    view = OperatorView.of({"operators": ROWS})

    assert view.changed == (
        OperatorLine("Constant", "2,000", "1,998", True, "simplify (-1), cleanup (-1)", "simplify, cleanup"),
        OperatorLine("Resize", "2", "2", False, "Resize-11 → 13", "migrate_opset"),
    )
    assert [line.operator for line in view.others] == ["Conv"]
    assert OperatorView.of({}) == OperatorView()


def test_a_page_has_the_table(report: dict[str, Any]) -> None:
    page = model_page(report)

    assert "<h2>Operators</h2>" in page
    assert page.index("<h2>Operators</h2>") < page.index("<h2>Interface</h2>")
    assert ">Pad-2 → 13 <span" in page
    assert "<h2>Operators</h2>" not in model_page({**report, "operators": ROWS[:1]})
