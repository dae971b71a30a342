"""The pages of two models: both graphs beside each other, the details, the first difference and the plot."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.comparison import compare
from onnx_migrate.difference import MatchedModels
from onnx_migrate.files import load
from onnx_migrate.report.html.render import comparison_page, difference_page
from tests.harness import model
from tests.report.html.pages import DESK, PHONE, UNREADABLE, needs_browser, opened
from tests.support.browser import Browser

NET = """17 (float[2,4] x) => (float[2,4] y) <float[4] w = {1.,2.,3.,4.}> {
  [n0] a = Relu (x) [n1] b = Mul (a, w) [n2] c = LeakyRelu <alpha = 0.1> (b) [n3] y = Add (c, x)
}"""

OTHER = (
    NET.replace("0.1", "0.25").replace("4.}", "5.}").replace("[n3] y = Add (c, x)", "[d] d = Abs (c) [e] y = Add (d, x)")
)  # fmt: skip

ODD = "<b>&\"'"


def page_of(one: onnx.ModelProto | str, two: onnx.ModelProto | str) -> str:
    models = MatchedModels.of(model(one), model(two))
    return difference_page(models.view, models.difference.summary)


def deep(count: int, alpha: float = 0.1) -> onnx.ModelProto:
    """Return a chain of layers; every layer of 20 nodes has one LeakyRelu with the attribute."""
    lines = [
        f"v{n + 1} = {f'LeakyRelu <alpha = {alpha}>' if n % 20 == 0 else 'Relu'} (v{n})" for n in range(count)
    ]
    proto = model(f"17 (float[2] v0) => (float[2] v{count}) {{ {' '.join(lines)} }}")
    for n, node in enumerate(proto.graph.node):
        node.name = f"/net/layer.{n // 20}/n{n}"
    return proto


def test_both_graphs_have_marked_boxes_that_link_to_the_details() -> None:
    page = page_of(NET, OTHER)
    links = re.findall(r'<a href="#((?:change|entry)-\d+)" class="\w+ is (\w+)">', page)

    assert [mark for _, mark in links] == ["changed", "changed", "changed", "changed", "changed", "added", "changed"]  # fmt: skip
    assert all(f'id="{link}"' in page for link, _ in links)
    assert page.count("The whole graph") == 2


def test_the_details_tell_old_and_new_values() -> None:
    page = page_of(NET, OTHER)

    assert "alpha: 0.1 → 0.25" in page
    assert "d = Abs (c)" in page
    assert "[1.0, 2.0, 3.0, 4.0] → float[4] [1.0, 2.0, 3.0, 5.0]" in page
    assert "1 changed" in page


def test_a_large_weight_is_listed_with_the_elements_that_differ() -> None:
    pair = []
    for by in (0.0, 0.5):
        proto = model("17 (float[2,32] x) => (float[2,32] y) <float[1] w = {1.}> { y = MatMul (x, w) }")
        weight = np.zeros((32, 32), np.float32)
        weight[3, 5], weight[4, 1] = by, 3 * by
        proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(weight, "w"))
        pair.append(proto)

    assert "differs in 2 of 1,024 elements, first at [3, 5]: 0 and 0.5; most at [4, 1]: 0 and 1.5" in page_of(
        *pair
    )


def test_equal_models_say_so() -> None:
    page = page_of(NET, NET.replace("a = Relu", "q = Relu").replace("Mul (a", "Mul (q"))

    assert "the models are the same but for names and order" in page
    assert 'class="badge same"' in page
    assert "Changed nodes" not in page


def test_a_page_of_two_models_is_self_contained_and_escapes_names() -> None:
    two = model(OTHER)
    for node in two.graph.node:
        node.name += ODD
    page = page_of(NET, two)

    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|https?://""", page)
    assert ODD not in page
    assert page == page_of(NET, two)


def test_a_large_model_is_folded_and_its_page_is_small() -> None:
    page = page_of(deep(2_000), deep(2_000, alpha=0.2))

    assert "layer.3" in page
    assert len(page) < 1_500_000


def test_the_page_of_a_comparison_has_the_first_difference_its_reason_and_the_plot() -> None:
    one, two = model(NET), model(NET.replace("4.}", "5.}"))
    verdict = compare(one, two, all_values=True, isolated=False)
    page = comparison_page(load(one), load(two), verdict)

    assert "<h2>First difference</h2>" in page
    assert "The models first differ at Mul &#39;n1&#39;." in page
    assert "weight &#39;w&#39; differs in 1 of 4 elements, at [3]: 4 and 5" in page[page.index("Why:") :]
    assert page.count('<rect x="') == 4
    assert "first difference, b: " in page


def test_the_page_of_equal_models_has_a_plot_without_bars() -> None:
    verdict = compare(model(NET), model(NET), all_values=True, isolated=False)
    page = comparison_page(load(model(NET)), load(model(NET)), verdict)

    assert "4 have no error" in page
    assert "<h2>First difference</h2>" not in page


@needs_browser
def test_pointing_at_a_bar_and_arrow_keys_tell_its_value(chromium: Browser, tmp_path: Path) -> None:
    one, two = model(NET), model(NET.replace("4.}", "5.}"))
    verdict = compare(one, two, all_values=True, isolated=False)
    tab = opened(chromium, comparison_page(load(one), load(two), verdict), tmp_path, width=PHONE)
    told = "document.querySelector('.plot output').textContent"
    assert tab.run(told).startswith("first difference, b: ")

    tab.run("document.querySelector('.plot svg').focus()")
    tab.key("ArrowRight")
    assert tab.run(told).startswith("c: ")
    tab.run(
        "(svg => { const box = svg.getBoundingClientRect();"
        " svg.dispatchEvent(new PointerEvent('pointerdown', {clientX: box.left + 2, clientY: box.top + 50})); })"
        "(document.querySelector('.plot svg'))"
    )
    assert tab.run(told) == "a: no error (Relu 'n0')"
    assert tab.complaints() == []


@pytest.mark.long
@needs_browser
def test_a_fold_opens_in_both_graphs_and_closes_in_both(chromium: Browser, tmp_path: Path) -> None:
    tab = opened(chromium, page_of(deep(2_000), deep(2_000, alpha=0.2)), tmp_path)
    shown = (
        "[...document.querySelectorAll('figure:not([hidden]) figcaption b')].map(item => item.textContent)"
    )
    assert tab.run(shown) == ["The whole graph"] * 2

    tab.run("document.querySelector('.graph a.fold').focus()")
    tab.key("Enter")
    one, two = tab.run(shown)
    assert one == two != "The whole graph"
    tab.key("Enter")  # the focus is on the button that leads back
    assert tab.run(shown) == ["The whole graph"] * 2
    assert tab.complaints() == []


@needs_browser
def test_a_marked_box_leads_to_its_details(chromium: Browser, tmp_path: Path) -> None:
    tab = opened(chromium, page_of(NET, OTHER), tmp_path)
    tab.run("document.querySelectorAll('details').forEach(item => { item.open = false; })")
    tab.run("document.querySelector('.graph a.added').focus()")
    tab.key("Enter")

    assert tab.run("document.activeElement.textContent") == "d = Abs (c)"
    assert tab.run("document.activeElement.checkVisibility()")
    assert tab.complaints() == []


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("page", ["small", "folded", "comparison"])
def test_a_page_is_readable_on_desk_and_phone_light_and_dark(
    chromium: Browser, tmp_path: Path, page: str, width: int, dark: bool
) -> None:
    one, two = model(NET), model(OTHER)
    text = page_of(one, two) if page == "small" else page_of(deep(2_000), deep(1_900, alpha=0.2))
    if page == "comparison":
        text = comparison_page(load(one), load(two), compare(one, two, all_values=True, isolated=False))
    tab = opened(chromium, text, tmp_path, width=width, dark=dark)
    tab.run("document.querySelectorAll('details').forEach(item => { item.open = true; })")

    assert tab.run(UNREADABLE) == []
    assert tab.complaints() == []
