"""docs/runtimes.md is what the tables of runtimes contain."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.standard.targets import known_names, shipped, tables
from tests.docs.runtime_sections import contents, known, section, span
from tests.docs.runtimes_page import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.runtimes_page"


@pytest.mark.parametrize("name", known_names())
def test_every_row_is_on_the_page(name: str) -> None:
    table = shipped(name)
    text = section(table)
    assert text in page()
    for row in table.releases:
        opset = (
            f"{row.oldest} to {row.opset}"
            if row.oldest and row.oldest != row.opset
            else str(row.opset or "any")
        )
        how = "measured" if row.measured else "read"
        line = rf"^\| {re.escape(row.since)}[^|]*\| {opset} \| {row.ir_version or ''} ?\| {row.resize_form}.*\| {how}[^|]*\|$"
        assert re.search(line, text, re.M), row
        assert row.source in text
    for operators in table.operators:
        releases = re.escape(span(operators.since, operators.until))
        assert re.search(rf"^\|.*\b{operators.names[-1]}\b.*\| {releases} \|", text, re.M), operators


def test_the_contents_lead_to_each_section() -> None:
    text = page()
    headings = {
        re.sub(r"[^\w\- ]", "", found.lower()).replace(" ", "-")
        for found in re.findall(r"^## (.*)$", text, re.M)
    }
    links = re.findall(r"\]\(#([^)]*)\)", contents(tables()))
    assert len(links) == len(tables())
    assert set(links) <= headings


def test_measured_and_read_are_told_apart() -> None:
    assert [known(shipped(name)) for name in ("onnxruntime", "tensorrt")] == ["measured", "read"]
    lines = contents(tables()).splitlines()[2:]
    marks = [line.rsplit("|", 2)[1].strip() for line in lines]
    assert marks == sorted(marks, key=["measured", "partly measured", "read"].index)
