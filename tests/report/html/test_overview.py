"""The drawing of the result's graph: boxes in place, links between drawings, and bounds on time and size."""

from __future__ import annotations

import builtins
import re
import time
from pathlib import Path
from typing import Any

import pytest

from onnx_migrate.report import Report
from onnx_migrate.report.body_view import BodyView, ViewedNode
from onnx_migrate.report.html.overview import drawings
from onnx_migrate.report.html.render import model_page, model_part
from onnx_migrate.report.result_view import ResultView
from onnx_migrate.reported import Outline
from tests.report.html.pages import needs_browser, opened
from tests.support.browser import Browser


def view_of(*nodes: ViewedNode) -> ResultView:
    return ResultView((), 0, (BodyView("graph", nodes),))


def ladder(count: int) -> ResultView:
    nodes = [ViewedNode("x", "input")]
    nodes += [
        ViewedNode(f"/l.{n // 20}/n{n}", "Conv", (n, max(0, n - 3)), n if n % 50 == 0 else None)
        for n in range(count)
    ]
    return view_of(*nodes)


def test_each_node_is_a_box_below_what_it_reads() -> None:
    (drawing,) = drawings(
        view_of(
            ViewedNode("x", "input"),
            ViewedNode("a", "Relu", (0,), 7),
            ViewedNode("b", "Com.Acme", (0,)),
            ViewedNode("c", "Add", (1, 2)),
        ),
        boxes=9,
        inside=True,
    )
    x, a, b, c = drawing.boxes
    assert [box.text for box in drawing.boxes] == ["x", "Relu", "Com.Acme", "Add"]
    assert [box.kind for box in drawing.boxes] == ["input", "activation", "other", "other"]
    assert x.y < a.y == b.y < c.y
    assert a.x + a.width < b.x or b.x + b.width < a.x
    assert [box.change for box in drawing.boxes] == [None, 7, None, None]
    assert (drawing.nodes, drawing.changed, drawing.left_out) == (3, 1, 0)
    assert drawing.lines.count("M") == 4
    assert all(box.x >= 0 and box.x + box.width <= drawing.width for box in drawing.boxes)
    assert all(box.y >= 0 and box.y + box.height <= drawing.height for box in drawing.boxes)


def test_a_fold_opens_the_drawing_of_its_nodes() -> None:
    whole, *inner = drawings(ladder(400), boxes=30, inside=True)
    assert whole.whole
    assert not any(drawing.whole for drawing in inner)
    numbers = [box.inside for box in whole.boxes if box.inside is not None]
    assert numbers == sorted(set(numbers))
    for box in whole.boxes:
        if box.inside is not None:
            opened_by = [whole, *inner][box.inside]
            assert (f"{opened_by.nodes} nodes", box.text) == (box.more, opened_by.title)
            assert opened_by.changed == box.changed
    assert sum(box.changed for box in whole.boxes) == whole.changed == 8


def test_of_a_batch_nothing_is_drawn_inside() -> None:
    (drawing,) = drawings(ladder(400), boxes=30, inside=False)
    assert all(box.inside is None for box in drawing.boxes)


def test_equal_views_give_equal_drawings() -> None:
    assert drawings(ladder(300), boxes=50, inside=True) == drawings(ladder(300), boxes=50, inside=True)


def test_long_lines_are_left_out_before_a_layout_takes_long() -> None:
    nodes = [ViewedNode(f"n{n}", "Conv", tuple(range(n))) for n in range(60)]
    begin = time.monotonic()
    (drawing,) = drawings(view_of(*nodes), boxes=150, inside=True)
    assert time.monotonic() - begin < 5, "with all lines it takes minutes"
    assert drawing.left_out > 1000
    assert drawing.lines.count("M") >= 59, "each reads the one above it"


def test_nodes_of_an_outline_are_marked() -> None:
    outline = Outline(frozenset({"a"}), "Nodes like this are marked.", "marked")
    nodes = (ViewedNode("a", "Exp"), ViewedNode("b", "Abs", (0,)))
    (drawing,) = drawings(view_of(*nodes), outline, boxes=9, inside=True)
    assert [box.outlined for box in drawing.boxes] == [1, 0]


def test_without_graphlay_the_page_says_how_to_get_the_drawing(
    viewed: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(name: str, *more: Any, **other: Any) -> Any:
        if name == "graphlay":
            raise ImportError(name)
        return real(name, *more, **other)

    monkeypatch.setattr(builtins, "__import__", refuse)
    page = model_page(viewed)
    assert "pip install &#39;onnx-migrate[html]&#39;" in page or "pip install 'onnx-migrate[html]'" in page
    assert "<svg" not in page


def test_a_page_has_each_changed_node_in_the_graph_and_a_link_to_its_change(viewed: Report) -> None:
    page = model_page(viewed)
    assert viewed.view is not None
    links = re.findall(r'<a href="#(change-\d+)" class="\w+ is">', page)
    assert len(links) == len(viewed.view.changes) == 3
    assert all(f'id="{link}"' in page for link in links)
    part = model_part(viewed, "m", "migrated", None)
    assert all(f'id="{name}"' in part for name in re.findall(r'href="#(m\w+-change-\d+)"', part))


@pytest.mark.long
@needs_browser
def test_boxes_open_what_they_stand_for_and_go_back(
    chromium: Browser, viewed: Report, tmp_path: Path
) -> None:
    view = ladder(400)
    report = type(viewed)(**{**vars(viewed), "view": ResultView(viewed.changes, 0, view.bodies)})
    tab = opened(chromium, model_page(report), tmp_path)
    shown = "[...document.querySelectorAll('figure:not([hidden])')].map(item => item.querySelector('b').textContent)"
    assert tab.run(shown) == ["The whole graph"]

    tab.run("document.querySelector('.graph a.fold').focus()")
    tab.key("Enter")
    assert tab.run(shown) != ["The whole graph"]
    tab.key("Enter")  # the focus is on the button that leads back
    assert tab.run(shown) == ["The whole graph"]
    assert tab.complaints() == []


@pytest.mark.long
@needs_browser
def test_a_changed_node_of_the_graph_opens_its_change(
    chromium: Browser, viewed: Report, tmp_path: Path
) -> None:
    tab = opened(chromium, model_page(viewed), tmp_path)
    tab.run("document.querySelectorAll('details').forEach(item => { item.open = false; })")
    link = "document.querySelectorAll('.graph a.is')[1]"
    target = tab.run(f"{link}.getAttribute('href').slice(1)")
    tab.run(f"{link}.focus()")
    tab.key("Enter")
    assert tab.run(
        "[...document.querySelectorAll('details')].filter(item => item.open).map(item => item.id)"
    ) == [target]
    assert tab.complaints() == []
