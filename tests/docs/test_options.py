"""docs/options.md lists the options as they are declared."""

from __future__ import annotations

from inspect import signature

import onnx_migrate
from tools.pages.options_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.pages.options_page"


def test_every_keyword_of_migrate_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")

    assert [f"\n## {name}\n" in text for name in signature(onnx_migrate.migrate).parameters].count(False) == 1
