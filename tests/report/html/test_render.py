"""The report as a page, as a browser shows it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx.parser
import pytest

import onnx_migrate
from onnx_migrate.errors import MigrateError
from onnx_migrate.report.failure import failure
from onnx_migrate.report.html.render import batch_page, model_page, model_part
from onnx_migrate.report.html.view_model import Row, anchor
from tests.report.browser import CHROMIUM, Browser, Tab, browser
from tests.support.paths import FIXTURES

needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
ODD = "<script>alert(1)</script>&\"'"
DESK, PHONE = 1440, 390

MANY = """<ir_version: 6, opset_import: ["": 9]>
g (float[2,3,4,5] v0) => (float[2,3,4,5] v{count}) {{
{nodes}
}}"""


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    migration = onnx_migrate.migrate(
        FIXTURES / "unet_opset9.onnx", dynamic=["image:N,3,30,32"], simplify=False, isolated=False
    )
    return {**migration.report.as_dict(), "model": "a/unet.onnx"}


@pytest.fixture(scope="module")
def many() -> dict[str, Any]:
    """Return the report of 1,500 changed nodes of two kinds, one with helper nodes, of names too long for any box."""
    operators = ("Clip <min = -1.0, max = 1.0>", "Softmax <axis = 1>")
    lines = [f"v{index + 1} = {operators[index % 2]} (v{index})" for index in range(1500)]
    proto = onnx.parser.parse_model(MANY.format(count=1500, nodes="\n".join(lines)))
    for index, node in enumerate(proto.graph.node):
        node.name = f"{'layer_of_a_long_name/' * 5}{index}"
    return onnx_migrate.migrate(proto, simplify=False, verify=False, isolated=False).report.as_dict()


@pytest.fixture(scope="module")
def refused() -> dict[str, Any]:
    proto = onnx.parser.parse_model(
        """<ir_version: 6, opset_import: ["": 9]> g (float[1,3] x) => (float[1,3] y) {
             u = Unsqueeze <axes = [0]> (x)
             v = Squeeze <axes = [0]> (u)
             y = ATen <operator = "where"> (v, x)
           }"""
    )
    proto.graph.node[2].name = "gate"
    with pytest.raises(MigrateError) as caught:
        onnx_migrate.migrate(proto, isolated=False)
    return failure(caught.value, "c/refused.onnx")


@pytest.fixture(scope="module")
def entries(report: dict[str, Any], refused: dict[str, Any]) -> list[dict[str, Any]]:
    failed = failure(onnx_migrate.LoadError(ODD), ODD)
    return [
        {**failed, "outcome": "failed", "total_seconds": 0.5},
        {**report, "total_seconds": 10.0},
        {**report, "model": "b/small.onnx", "outcome": "unchanged", "total_seconds": 9.0},
        {**refused, "total_seconds": 0.75},
    ]


def write_batch(entries: list[dict[str, Any]], folder: Path) -> Path:
    kinds = ("migrated", "unchanged", "refused", "failed")
    totals = {
        "ended": len(entries),
        "models": len(entries),
        "seconds": 20.0,
        "outcomes": {kind: sum(entry["outcome"] == kind for entry in entries) for kind in kinds},
        "reasons": {"no-equal": 1, "not-onnx": 1},
    }
    page = folder / "batch.html"
    parts = map(model_part, entries)
    page.write_text(
        "".join(batch_page([Row.of(entry) for entry in entries], parts, totals)), encoding="utf-8"
    )
    return page


@pytest.fixture(scope="module")
def batch(entries: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_batch(entries, tmp_path_factory.mktemp("batch"))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


def opened(chromium: Browser, page: str, folder: Path, **screen: Any) -> Tab:
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    return chromium.open(path, **screen)


def test_a_page_needs_nothing_beside_it(report: dict[str, Any], batch: Path) -> None:
    for page in (model_page(report), batch.read_text(encoding="utf-8")):
        assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|https?://""", page)


def test_the_same_report_gives_the_same_bytes(
    report: dict[str, Any], entries: list[dict[str, Any]], tmp_path: Path
) -> None:
    assert model_page(report) == model_page(report)
    first = write_batch(entries, tmp_path).read_bytes()
    assert write_batch(entries, tmp_path).read_bytes() == first


def test_what_a_model_says_is_text(batch: Path) -> None:
    page = batch.read_text(encoding="utf-8")

    assert "<script>alert" not in page
    assert page.count("<script>") == 1


def test_all_of_a_report_is_told(report: dict[str, Any]) -> None:
    page = model_page(report, sizes=("1 B", "2 B"))

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


def test_a_page_of_thousands_is_small(many: dict[str, Any]) -> None:
    page = model_page(many)

    assert len(many["changes"]) == 1500
    assert len(page) < 1_000_000
    assert page.count('<div class="pair">') == 2, "nodes that differ in names alone are drawn once"
    assert all(change["node"] in page for change in many["changes"])


def test_what_is_not_listed_is_counted(many: dict[str, Any]) -> None:
    assert "… and 700 more" in model_part(many)


def test_a_backtick_of_the_model_s_own_is_no_code(report: dict[str, Any]) -> None:
    notes = [{"severity": "info", "message": message} for message in ("`axes` <i>", "a ` b")]
    page = model_page({**report, "notes": notes})

    assert "<code>axes</code> &lt;i&gt;" in page
    assert "a ` b" in page


WRONG = """(() => {
  const lightness = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = numbers(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page is wider than the screen");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; node = walker.nextNode();) {
    const element = node.parentElement, box = element.getBoundingClientRect();
    if (!node.data.trim() || !box.width || element.closest("script")) continue;
    const [light, dark] = [numbers(getComputedStyle(element).color), behind(element)].map(lightness).sort((a, b) => b - a);
    if ((light + .05) / (dark + .05) < 4.5) found.push(((light + .05) / (dark + .05)).toFixed(2) + ": " + node.data);
    if (!element.closest(".scroll") && box.right > innerWidth + 1) found.push("over the edge: " + node.data);
  }
  return found;
})()"""
"""Texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3), and what hangs over the edge of the screen."""


@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["report", "many", "refused", "table"])
def test_it_can_be_read_anywhere(
    request: pytest.FixtureRequest,
    chromium: Browser,
    batch: Path,
    tmp_path: Path,
    name: str,
    width: int,
    dark: bool,
) -> None:
    page = batch.read_text(encoding="utf-8") if name == "table" else model_page(request.getfixturevalue(name))
    tab = opened(chromium, page, tmp_path, width=width, dark=dark)
    tab.run("document.querySelectorAll('details').forEach(item => { item.open = true; })")

    assert tab.run("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert tab.run("document.body.innerText.length") > 200
    assert tab.run(WRONG) == []
    assert tab.complaints() == []


@needs_browser
def test_before_and_after_stand_beside_each_other_or_on_a_phone_below(
    chromium: Browser, report: dict[str, Any], tmp_path: Path
) -> None:
    sides = "[...document.querySelector('.pair').querySelectorAll('.side')].map(item => item.getBoundingClientRect())"
    both = f"(() => {{ const [a, b] = {sides}; return [b.left >= a.right, b.top >= a.bottom]; }})()"

    assert opened(chromium, model_page(report), tmp_path, width=DESK).run(both) == [True, False]
    assert opened(chromium, model_page(report), tmp_path, width=PHONE).run(both) == [False, True]


DRAWN = """(() => {
  const form = document.querySelectorAll(".form")[%d], drawn = form.querySelector(".pair");
  return {
    heading: form.querySelector("code").textContent,
    texts: [...drawn.querySelectorAll("[data-t]")].map(item => item.textContent),
    titles: [...drawn.querySelectorAll("[title]")].map(item => item.title),
  };
})()"""


@needs_browser
def test_a_node_is_drawn_with_its_slots(chromium: Browser, many: dict[str, Any], tmp_path: Path) -> None:
    tab = opened(chromium, model_page(many), tmp_path)

    clip = tab.run(DRAWN % 0)
    assert clip["heading"].endswith("/0")
    assert clip["texts"] == ["v0", "1", "-1", "v1", "v0", "-1", "1", "v1"], "attributes, and then constants"
    assert clip["titles"][3].endswith("_min: float"), "the pointer tells where a constant is from"
    titles = tab.run("[...document.querySelectorAll('.node > b')].map(item => item.textContent.trim())")
    assert titles[:3] == ["Clip 6", "Clip 13", "Softmax 1"]
    assert {"Flatten 13 added", "Shape 15 added", "Reshape 14 added", "Softmax 13"} == set(titles[3:])
    assert tab.run("document.querySelectorAll('.slot.new').length") == 3


@needs_browser
def test_a_node_that_is_chosen_is_drawn(chromium: Browser, many: dict[str, Any], tmp_path: Path) -> None:
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


@needs_browser
def test_long_names_are_shortened_at_their_start(
    chromium: Browser, report: dict[str, Any], tmp_path: Path
) -> None:
    name = "/module" * 40 + "/output"
    text = model_page(report).replace(report["changes"][0]["before"]["outputs"][0], name)
    tab = opened(chromium, text, tmp_path, width=PHONE)

    box = f"[...document.querySelectorAll('.wires b')].find(item => item.title === {name!r})"
    assert tab.run(f"{box}.scrollWidth > {box}.clientWidth"), "it does not fit"
    assert (
        tab.run(f"getComputedStyle({box}).textOverflow + getComputedStyle({box}).direction") == "ellipsisrtl"
    )
    assert tab.run(f"{box}.textContent") == name, "it is copied whole"


@needs_browser
def test_on_paper_all_is_open_and_dark_on_light(
    chromium: Browser, many: dict[str, Any], tmp_path: Path
) -> None:
    tab = opened(chromium, model_page(many), tmp_path, dark=True)
    tab.run("document.querySelectorAll('details').forEach(item => { item.open = false; })")
    drawn = "document.querySelector('.node').checkVisibility()"
    assert tab.run(drawn) is False

    theme = {"name": "prefers-color-scheme", "value": "dark"}
    tab.call("Emulation.setEmulatedMedia", media="print", features=[theme])

    tab.until(drawn, True)
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@needs_browser
def test_a_refusal_shows_the_node_in_the_way(
    chromium: Browser, refused: dict[str, Any], tmp_path: Path
) -> None:
    tab = opened(chromium, model_page(refused), tmp_path)

    words = tab.run("document.querySelector('.failure').innerText")
    for text in (
        "no-equal",
        "ATen-9 → 10 gate",
        "names a function of PyTorch",
        "operator_export_type=ONNX",
        "v",
        "y",
    ):
        assert text in words
    assert tab.run("document.querySelector('.blocked > b').innerText") == "ATen 9 cannot be migrated"
    assert "Nodes changed before the failure" in tab.run("document.body.innerText")
    assert tab.run("document.querySelectorAll('.group').length") == 2, "what had been changed"


def test_a_difference_shows_its_outputs(report: dict[str, Any]) -> None:
    error = onnx_migrate.VerificationFailed("output 'y' differs")
    finding = {
        **report["verification"]["comparisons"][0],
        "problem": "5 of 6 differ",
        "largest_absolute": "inf",
    }
    error.verification = {**report["verification"], "kind": "differs", "comparisons": [finding]}

    page = model_page(failure(error, "m.onnx"))

    assert '<span class="differs">5 of 6 differ</span>' in page
    assert ">inf<" in page


TABLE = """[...document.querySelectorAll("#models tbody tr")].filter(row => !row.hidden)
  .map(row => row.cells[0].textContent)"""


@needs_browser
@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", [ODD, "a/unet.onnx", "b/small.onnx", "c/refused.onnx"]),
        ("#outcome=failed", [ODD]),
        ("#q=small%20unchanged", ["b/small.onnx"]),
        ("#q=not-onnx", [ODD]),
        ("#outcome=refused&q=aten", ["c/refused.onnx"]),
        ("#outcome=refused&q=unet", []),
        ("#sort=6", [ODD, "c/refused.onnx", "b/small.onnx", "a/unet.onnx"]),
        ("#sort=-6", ["a/unet.onnx", "b/small.onnx", "c/refused.onnx", ODD]),
    ],
)
def test_the_table_is_filtered_and_sorted(
    chromium: Browser, batch: Path, fragment: str, expected: list[str]
) -> None:
    tab = chromium.open(batch, fragment)

    assert tab.run(TABLE) == expected
    assert tab.run("document.getElementById('count').textContent") == f"{len(expected)} shown"
    assert tab.run("[...document.querySelectorAll('section.model')].every(item => item.hidden)")
    assert tab.complaints() == []


@needs_browser
def test_a_row_leads_to_its_model_and_back(chromium: Browser, batch: Path) -> None:
    tab = chromium.open(batch)
    shown = "[...document.querySelectorAll('section')].filter(item => !item.hidden).map(item => item.id)"

    tab.run(f"document.querySelector('a[href=\"#{anchor('b/small.onnx')}\"]').focus()")
    tab.key("Enter")
    tab.until(shown, [anchor("b/small.onnx")])
    assert tab.run("document.activeElement.textContent") == "b/small.onnx"

    tab.run("document.querySelector('section:not([hidden]) .back a').focus()")
    tab.key("Enter")
    tab.until(shown, ["overview"])
    assert tab.run("document.activeElement.textContent") == "b/small.onnx", "where one was"
    assert tab.complaints() == []


@needs_browser
def test_words_that_are_typed_filter_and_a_key_sorts(chromium: Browser, batch: Path) -> None:
    tab = chromium.open(batch)

    tab.run("document.getElementById('words').focus()")
    tab.call("Input.insertText", text="onnx migrated")
    assert tab.run(TABLE) == ["a/unet.onnx"]

    tab.run("document.getElementById('words').select()")
    tab.call("Input.insertText", text="onnx")
    tab.run("document.querySelectorAll('#models th button')[5].focus()")
    tab.key("Enter")
    tab.key("Enter")
    assert tab.run(TABLE) == ["a/unet.onnx", "b/small.onnx", "c/refused.onnx", ODD]
    assert tab.run("document.querySelectorAll('#models th')[5].getAttribute('aria-sort')") == "descending"


@needs_browser
def test_the_counts_lead_to_their_models(chromium: Browser, batch: Path) -> None:
    tab = chromium.open(batch)

    tab.run("document.querySelector('a[aria-label=\"1 refused\"]').click()")
    tab.until(TABLE, ["c/refused.onnx"])

    tab.run("[...document.querySelectorAll('a')].find(item => item.textContent === 'not-onnx').click()")
    tab.until(TABLE, [ODD])
