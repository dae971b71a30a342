"""Pages as a browser shows them: self-contained, readable on any screen, and the table of a batch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from onnx_migrate.batching import Outcome
from onnx_migrate.report import Report
from onnx_migrate.report.html.contents import anchor
from onnx_migrate.report.html.render import model_page
from onnx_migrate.rewrite.change_log import Note
from tests.report.html.pages import DESK, ODD, PHONE, UNREADABLE, needs_browser, opened, write_batch
from tests.support.browser import Browser


def test_a_page_loads_no_other_file(report: Report, batch: Path) -> None:
    for page in (model_page(report), batch.read_text(encoding="utf-8")):
        assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|https?://""", page)


def test_equal_reports_render_to_equal_bytes(report: Report, entries: list[Outcome], tmp_path: Path) -> None:
    assert model_page(report) == model_page(report)
    first = write_batch(entries, tmp_path).read_bytes()
    assert write_batch(entries, tmp_path).read_bytes() == first


def test_names_from_a_model_are_escaped(batch: Path) -> None:
    page = batch.read_text(encoding="utf-8")

    assert "<script>alert" not in page
    assert page.count("<script>") == 1


def test_an_unpaired_backtick_is_not_code(report: Report) -> None:
    notes = tuple(Note("a", "b", message) for message in ("`axes` <i>", "a ` b"))
    page = model_page(replace(report, notes=notes))

    assert "<code>axes</code> &lt;i&gt;" in page
    assert "a ` b" in page


@pytest.mark.long
@needs_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("name", ["report", "many", "refused", "viewed", "table"])
def test_a_page_is_readable_on_desk_and_phone_light_and_dark(
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
    assert tab.run(UNREADABLE) == []
    assert tab.complaints() == []


@needs_browser
def test_printing_opens_all_details_on_a_white_background(
    chromium: Browser, many: Report, tmp_path: Path
) -> None:
    tab = opened(chromium, model_page(many), tmp_path, dark=True)
    tab.run("document.querySelectorAll('details').forEach(item => { item.open = false; })")
    drawn = "document.querySelector('.node').checkVisibility()"
    assert tab.run(drawn) is False

    theme = {"name": "prefers-color-scheme", "value": "dark"}
    tab.call("Emulation.setEmulatedMedia", media="print", features=[theme])

    tab.until(drawn, True)
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


TABLE = """[...document.querySelectorAll("#models tbody tr")].filter(row => !row.hidden)
  .map(row => row.cells[0].textContent)"""


@needs_browser
@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", [ODD, "a/unet.onnx", "b/small.onnx", "c/refused.onnx"]),
        ("#status=failed", [ODD]),
        ("#q=small%20unchanged", ["b/small.onnx"]),
        ("#q=not-onnx", [ODD]),
        ("#status=refused&q=aten", ["c/refused.onnx"]),
        ("#status=refused&q=unet", []),
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
def test_a_row_links_to_its_model_and_back(chromium: Browser, batch: Path) -> None:
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
def test_typed_words_filter_and_enter_sorts(chromium: Browser, batch: Path) -> None:
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
def test_counts_filter_the_table(chromium: Browser, batch: Path) -> None:
    tab = chromium.open(batch)

    tab.run("document.querySelector('a[aria-label=\"1 refused\"]').click()")
    tab.until(TABLE, ["c/refused.onnx"])

    tab.run("[...document.querySelectorAll('a')].find(item => item.textContent === 'not-onnx').click()")
    tab.until(TABLE, [ODD])
