"""docs/tutorial.md shows the real output of its commands, and its code runs."""

from __future__ import annotations

import re

import pytest

from tools.pages.tutorial import PAGE, page


def without_numbers(text: str) -> str:
    """Return text without its numbers, which depend on the installed versions, and on the width of a bar or a column."""
    return re.sub(r"[\d.,#]+|[ \t]+", " ", text)


@pytest.mark.long
def test_the_outputs_are_those_of_this_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")

    assert without_numbers(PAGE.read_text(encoding="utf-8")) == without_numbers(page()), (
        "run COLUMNS=100 python -m tools.pages.tutorial"
    )
