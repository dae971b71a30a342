"""docs/runtimes.md is what the table of runtimes contains."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.spec.targets import shipped
from tests.docs.runtimes_page import PAGE, SOURCES, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.runtimes_page"


@pytest.mark.parametrize("name", SOURCES)
def test_every_row_is_on_the_page(name: str) -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"## {shipped(name).title}\n")
    for row in shipped(name).releases:
        version = rf" {row.ir_version} \|" if row.ir_version else ""
        line = rf"^\| {re.escape(row.since)} \| {row.opset} \|{version} {row.resize_form}"
        assert re.search(line, section.partition("## ")[0], re.M), row
