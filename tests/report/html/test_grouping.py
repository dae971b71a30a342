"""Changes grouped by operator, reason and drawing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest

import onnx_migrate
from onnx_migrate.errors import Where
from onnx_migrate.report import ModelSummary, Report
from onnx_migrate.report.html.grouping import ChangeGroup, change_anchors, grouped_by_request, titled
from onnx_migrate.report.html.grouping import grouped as grouped_with_places
from onnx_migrate.report.html.render import model_page, model_part
from onnx_migrate.rewrite.change_log import Change, Exactness
from tests.harness import model
from tests.report.html.pages import DRAWN, needs_browser, opened
from tests.support.browser import Browser


def change(
    number: int, *, version: int = 13, reason: str = "because", exactness: str = "exact", scope: str = "graph"
) -> Change:
    node = onnx.helper.make_node("Relu", [f"x{number}"], [f"y{number}"], alpha=1).SerializeToString()
    where = Where(scope, f"n{number}", "Relu")
    return Change("p", where, node, 6, node, version, (), reason, Exactness(exactness))


def grouped(changes: Iterable[Change], *, listed: int) -> tuple[ChangeGroup, ...]:
    return grouped_with_places(enumerate(changes), listed=listed)


def test_nodes_of_one_kind_share_a_form() -> None:
    (group,) = grouped([change(1), change(2), change(3)], listed=10)

    assert (group.before, group.after, group.reason, group.nodes) == ("Relu-6", "Relu-13", "because", 3)
    (form,) = group.forms
    assert [column.label for column in form.columns] == ["node", "X", "Y"], "and not alpha, which is the same"
    assert form.rows == (("n1", "x1", "y1"), ("n2", "x2", "y2"), ("n3", "x3", "y3"))
    assert [form.texts[column.index] for column in form.columns] == ["n1", "x1", "y1"]


def test_nodes_of_one_name_in_two_graphs_show_their_graph() -> None:
    nodes = [change(1, scope="graph/If_0:then_branch"), change(1)]
    ((form,),) = [group.forms for group in grouped(nodes, listed=10)]

    assert [column.label for column in form.columns] == ["node", "in"]
    assert form.rows == (("n1", "graph/If_0:then_branch"), ("n1", ""))


def test_the_number_of_listed_nodes_is_limited() -> None:
    ((form,),) = [group.forms for group in grouped(map(change, range(9)), listed=4)]

    assert (len(form.rows), form.unlisted, form.nodes) == (4, 5, 9)


def test_versions_and_reasons_make_groups_in_order_of_appearance() -> None:
    groups = grouped([change(1), change(2, version=14), change(3, reason="else"), change(4)], listed=10)

    assert [(group.after, group.reason, group.nodes) for group in groups] == [
        ("Relu-13", "because", 2),
        ("Relu-14", "because", 1),
        ("Relu-13", "else", 1),
    ]


def test_reasons_that_differ_only_in_lists_are_one_group() -> None:
    (group,) = grouped(
        [change(1, reason="shape [1, 2] → [0, 2]"), change(2, reason="shape [1] → [0]")], listed=10
    )

    assert group.reason == "shape […] → […]"
    assert [column.label for column in group.forms[0].columns] == ["node", "reason", "X", "Y"]
    assert group.forms[0].rows[1][1] == "shape [1] → [0]"


def test_a_group_says_how_an_inexact_change_may_differ() -> None:
    groups = grouped([change(1), change(2, exactness="equivalent"), change(3, reason="r")], listed=10)

    assert [group.inexact for group in groups] == ["equal up to rounding", ""]


@pytest.mark.parametrize("most", [9, 10, 80])
def test_a_title_is_cut_in_the_middle(most: int) -> None:
    for length in (most - 1, most, most + 1, 500):
        cut = titled("a" * (length - 1) + "z", most)
        assert len(cut) == min(length, most)
        assert cut.endswith("z")


def test_titles_have_at_most_80_characters() -> None:
    operators = [f"AnOperatorOfALongName{number}" for number in range(30)]
    helpers = tuple(onnx.helper.make_node(name, ["x"], ["y"]).SerializeToString() for name in operators)
    replaced = change(1)._replace(serialised_after=None, serialised_helpers=helpers)
    (group,) = grouped([Change(*replaced)], listed=1)
    assert len(f"{group.title} ×{group.nodes:,}") <= 80
    assert group.title.startswith("Relu-6 → AnOperatorOfALongName0 + ")
    assert group.title.endswith(" + 26 more")


def test_changes_that_were_asked_for_come_first_and_new_versions_last() -> None:
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="n").SerializeToString()
    kept = Change("migrate_opset", Where("graph", "n", "Relu"), node, 6, node, 13, (), "same")
    other, asked = change(1), change(2)._replace(pass_name="mine, cleanup")
    side = ModelSummary(9, 4, (("", 9),), 1, (), ())
    changed = change(3)._replace(
        serialised_after=onnx.helper.make_node("Relu", ["x3"], ["y3"]).SerializeToString()
    )
    changes = (kept, Change(*other._replace(pass_name="cleanup")), Change(*changed), Change(*asked))
    report = Report("m", side, side, ("migrate_opset", "mine", "cleanup"), changes, ())

    first, others = grouped_by_request(report, listed=9)

    assert [group.places for group in first] == [(3,)]
    assert [group.places for group in others] == [(2, 1), (0,)], (
        "a new version alone comes after, or with its like"
    )
    assert change_anchors(first + others) == {3: "change-3", 2: "change-2", 1: "change-2", 0: "change-0"}


def test_a_page_with_thousands_of_changes_is_small(many: Report) -> None:
    page = model_page(many)

    assert len(many.changes) == 1500
    assert len(page) < 1_000_000
    assert page.count('<div class="pair">') == 2, "nodes that differ in names alone are drawn once"
    assert all(change.where.node in page for change in many.changes)


def test_nodes_that_are_not_listed_are_counted(many: Report) -> None:
    assert "… and 700 more" in model_part(many, "m", "migrated", None)


@pytest.mark.long
@needs_browser
def test_a_selected_node_is_drawn(chromium: Browser, many: Report, tmp_path: Path) -> None:
    tab = opened(chromium, model_page(many), tmp_path)
    tab.run("document.querySelector('.form details').open = true")

    tab.run("document.querySelectorAll('.form tbody button')[5].focus()")
    tab.key("Enter")

    clip = tab.run(DRAWN % 0)
    assert clip["heading"].endswith("/10")
    assert clip["texts"] == ["v10", "1", "-1", "v11", "v10", "-1", "1", "v11"]
    assert {"v10", "v11"} < set(clip["titles"])
    assert tab.run("document.querySelectorAll('.form')[0].querySelectorAll('tr[aria-current]').length") == 1
    assert tab.run(DRAWN % 1)["heading"].endswith("/1"), "the other drawing stays"
    assert tab.complaints() == []


def test_notes_on_changes_that_the_user_asked_for_come_first_and_only_once() -> None:
    migration = onnx_migrate.migrate(
        model('17 (float[N,4] x) => (float[N,4] y) { y = Relu (x) }'),
        fix_shape="x:2,4", verify=False, isolated=False,
    )  # fmt: skip
    page = migration.html()

    change = "input x: [N, 4] → [2, 4]"
    assert page.count(change) == 1
    assert page.index("Changes that you asked for") < page.index(change) < page.index("Graph of the result")
    assert "No node of the result was rewritten" not in page
