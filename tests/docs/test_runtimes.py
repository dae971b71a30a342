"""docs/runtimes.md is what the tables of runtimes contain."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.standard.targets import known_names, milestones, shipped, tables
from tests.support.targets import targets_of
from tools.pages.runtime_sections import contents, known, operator_states, section, span
from tools.pages.runtimes_page import PAGE, page
from tools.pages.step_pages import slug


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.pages.runtimes_page"


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", known_names())
def test_every_row_is_on_the_page(name: str) -> None:
    table = shipped(name)
    text = section(table)
    assert text in page()
    for row in table.releases:
        span_ = f"{row.oldest} to {row.opset}" if row.oldest != row.opset else str(row.opset)
        bound = span_ if row.oldest and row.opset else f"from {row.oldest}" if row.oldest else "any"
        opset = str(row.opset) if row.opset and not row.oldest else bound
        how = "measured" if row.measured else "read"
        line = rf"^\| {re.escape(row.since)}[^|]*\| {opset} \| {row.ir_version or ''} ?\| {row.resize_form}.*\| {how}[^|]*\|$"
        assert re.search(line, text, re.M), row
        assert row.source in text
    for operators in table.operators:
        releases = re.escape(span(operators.since, operators.until))
        assert re.search(rf"^\|.*\b{operators.names[-1]}\b.*\| {releases} \|", text, re.M), operators


def test_the_contents_lead_to_each_section() -> None:
    text = page()
    headings = {slug(heading) for heading in re.findall(r"^## (.*)$", text, re.M)}
    links = re.findall(r"\]\(#([^)]*)\)", contents(tables()))
    assert len(links) == len(tables())
    assert set(links) <= headings


@pytest.mark.long
def test_the_states_of_operators_are_counted_for_the_newest_release() -> None:
    (target,) = targets_of(
        """operators = "unknown"
[[release]]
from = "1.0"
[[operator]]
names = ["Add", "Mul"]
measured = true
[[operator]]
names = ["Relu"]
[[operator]]
names = ["Sub"]
until = "1.0"
[[operator]]
names = ["Mul"]
lacking = true
measured = true"""
    )
    assert operator_states(target) == "1 measured, 1 read, 1 missing; others not known"
    for table in tables():
        assert operator_states(milestones(table)[-1]) in page()


def test_measured_and_read_are_told_apart() -> None:
    assert [known(shipped(name)) for name in ("onnxruntime", "tensorrt")] == ["measured", "read"]
    lines = contents(tables()).splitlines()[2:]
    marks = [line.rsplit("|", 2)[1].strip() for line in lines]
    assert marks == sorted(marks, key=["measured", "partly measured", "read"].index)
