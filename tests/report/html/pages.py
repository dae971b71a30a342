"""What the tests of HTML pages share: screens, and how a page is opened in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from onnx_migrate.batching import Outcome
from onnx_migrate.batching.job import STATES
from onnx_migrate.report.html.contents import Row
from onnx_migrate.report.html.render import batch_page, model_part
from tests.support.browser import CHROMIUM, Browser, Tab
from tests.support.skips import Elsewhere, skip_if

__all__ = ["DESK", "DRAWN", "ODD", "PHONE", "needs_browser", "opened", "write_batch"]

needs_browser = skip_if(CHROMIUM is None, "Chromium is not installed", Elsewhere.INSTALLED)

ODD = "<script>alert(1)</script>&\"'"
"""The name of a model that must not be taken for HTML."""

DESK, PHONE = 1440, 390
"""Widths of screens in pixels."""

DRAWN = """(() => {
  const form = document.querySelectorAll(".form")[%d], drawn = form.querySelector(".pair");
  return {
    heading: form.querySelector("code").textContent,
    texts: [...drawn.querySelectorAll("[data-t]")].map(item => item.textContent),
    titles: [...drawn.querySelectorAll("[title]")].map(item => item.title),
  };
})()"""
"""The heading, texts and tooltips of the n-th drawing of a page."""


def write_batch(entries: list[Outcome], folder: Path) -> Path:
    kinds = ("migrated", "unchanged", "refused", "invalid", "failed")
    totals = {
        "ended": len(entries),
        "models": len(entries),
        "seconds": 20.0,
        "outcomes": {kind: sum(entry.kind == kind for entry in entries) for kind in kinds},
        "states": {kind: sum(entry.state == kind for entry in entries) for kind in STATES},
        "verification": {"verified": 1, "unverified": 0, "not verified": 1},
        "reasons": {"no-equal": 1, "not-onnx": 1},
    }
    page = folder / "batch.html"
    rows = [Row.of(item.report, item.source, item.state, status="", seconds=item.seconds) for item in entries]
    parts = (model_part(item.report, item.source, item.state, item.output) for item in entries)
    page.write_text("".join(batch_page(rows, parts, totals)), encoding="utf-8")
    return page


def opened(chromium: Browser, page: str, folder: Path, **screen: Any) -> Tab:
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    return chromium.open(path, **screen)
