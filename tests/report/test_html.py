"""The report as a page, as a browser shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import onnx_migrate
from onnx_migrate.report.html import batch_page, model_page, model_part, row

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
ODD = "<script>alert(1)</script>&\"'"


def browse(page: Path, fragment: str = "", *flags: str) -> tuple[str, str]:
    """Return the document as it is once its script ran, and what the console said."""
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run",
            f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr", *flags, "--dump-dom",
            f"{page.as_uri()}{fragment}",
        ],
        capture_output=True, text=True, timeout=90, check=True,
    )  # fmt: skip
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return done.stdout, console


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    migration = onnx_migrate.migrate(
        FIXTURES / "unet_opset9.onnx", dynamic=["image:N,3,30,32"], simplify=False, isolated=False
    )
    return {**migration.report.as_dict(), "model": "a/unet.onnx"}


def entries(report: dict[str, Any]) -> list[dict[str, Any]]:
    failure = {
        "model": ODD,
        "outcome": "failed",
        "error": {"code": "not-onnx", "reason": ODD, "hint": "", "node": "", "operator": ""},
    }
    return [
        {**report, "total_seconds": 10.0, "number": 1},
        {**report, "model": "b/small.onnx", "outcome": "unchanged", "total_seconds": 9.0, "number": 2},
        {**failure, "total_seconds": 0.5, "number": 3},
    ]


@pytest.fixture
def batch(report: dict[str, Any], tmp_path: Path) -> Path:
    found = entries(report)
    totals = {
        "ended": 3,
        "models": 3,
        "seconds": 20.0,
        "outcomes": {"migrated": 1, "unchanged": 1, "refused": 0, "failed": 1},
    }
    parts = [model_part(entry, number=entry["number"]) for entry in found]
    page = tmp_path / "batch.html"
    page.write_text("".join(batch_page([row(entry) for entry in found], parts, totals)), encoding="utf-8")
    return page


def rows(document: str) -> list[tuple[str, bool]]:
    """Return the models in the table, and whether each is hidden."""
    found = re.findall(r'<tr data-outcome="\w+"( hidden="")?><td><a href="#m\d+">(.*?)</a>', document)
    return [(name, bool(hidden)) for hidden, name in found]


def test_a_page_needs_nothing_beside_it(report: dict[str, Any], batch: Path) -> None:
    for page in (model_page(report), batch.read_text(encoding="utf-8")):
        assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|https?://""", page)


def test_what_a_model_says_is_text(batch: Path) -> None:
    page = batch.read_text(encoding="utf-8")

    assert "<script>alert" not in page
    assert page.count("<script>") == 1


def test_all_of_a_report_is_told(report: dict[str, Any]) -> None:
    page = model_page(report, sizes=("1 B", "2 B"))

    for change in report["changes"]:
        assert change["node"] in page
        for name in change["before"]["attributes"]:
            assert f"{name} = " in page
    for text in (
        "9 → 17",
        "1 B → 2 B",
        "[N, 3, 30, 32]",
        "bit for bit the same",
        "N=2",
        "IR version 4 became 8",
    ):
        assert text in page


@needs_browser
@pytest.mark.parametrize(
    "flags",
    [["--window-size=1200,900"], ["--window-size=500,900", "--blink-settings=preferredColorScheme=0"]],
    ids=["desk", "phone in the dark"],
)
def test_a_model_s_page_renders_without_a_word_on_the_console(
    report: dict[str, Any], tmp_path: Path, flags: list[str]
) -> None:
    page = tmp_path / "model.html"
    wide = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script>"
    page.write_text(model_page(report).replace("</body>", wide + "</body>"), encoding="utf-8")

    document, console = browse(page, "", *flags)

    assert console == ""
    assert document.count('<div class="pair">') == len(report["changes"])
    found = re.search(r"<title>(\d+) of (\d+)</title>", document)
    assert found is not None
    assert int(found[1]) <= int(found[2]), "nothing hangs over the edge"


@needs_browser
@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", [("a/unet.onnx", False), ("b/small.onnx", False), ("ODD", False)]),
        ("#outcome=failed", [("a/unet.onnx", True), ("b/small.onnx", True), ("ODD", False)]),
        ("#q=small%20unchanged", [("a/unet.onnx", True), ("b/small.onnx", False), ("ODD", True)]),
        ("#q=not-onnx", [("a/unet.onnx", True), ("b/small.onnx", True), ("ODD", False)]),
        ("#sort=6", [("ODD", False), ("b/small.onnx", False), ("a/unet.onnx", False)]),
        ("#sort=-6", [("a/unet.onnx", False), ("b/small.onnx", False), ("ODD", False)]),
    ],
)
def test_the_table_is_filtered_and_sorted(
    batch: Path, fragment: str, expected: list[tuple[str, bool]]
) -> None:
    document, console = browse(batch, fragment)

    assert console == ""
    assert [("ODD" if "alert" in name else name, hidden) for name, hidden in rows(document)] == expected
    shown = sum(not hidden for _, hidden in expected)
    assert f">{shown} shown<" in document
    assert '<section id="overview">' in document


@needs_browser
def test_a_row_leads_to_its_model(batch: Path) -> None:
    document, console = browse(batch, "#m3")

    assert console == ""
    hidden = {
        name: bool(mark) for name, mark in re.findall(r'<section[^>]*id="(\w+)"( hidden="")?>', document)
    }
    assert hidden == {"overview": True, "m1": True, "m2": True, "m3": False}


@needs_browser
def test_a_click_sorts_and_words_filter(batch: Path) -> None:
    act = """<script>
      document.querySelectorAll("#models th button")[5].click();
      const words = document.getElementById("words");
      words.value = "onnx unet"; words.dispatchEvent(new Event("input"));
    </script>"""
    batch.write_text(batch.read_text(encoding="utf-8").replace("</body>", act + "</body>"), encoding="utf-8")

    document, console = browse(batch)

    assert console == ""
    assert [hidden for _, hidden in rows(document)] == [True, True, False]
    assert 'aria-sort="ascending"' in document
