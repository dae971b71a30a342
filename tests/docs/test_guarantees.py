"""docs/maintainers/promises.md: every test that it names exists, and every promise has one."""

from __future__ import annotations

import ast
import re

import pytest

from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "maintainers" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))


def test_every_promise_names_its_tests() -> None:
    tables = TEXT.partition("## How it is tested")[0]
    rows = [line for line in tables.splitlines() if line.startswith("| ") and "| held by |" not in line]

    assert len(rows) > 25
    assert [row for row in rows if not re.search(r"\| (`tests/[\w/]+\.py::\w+` ?)+ ?\|$", row)] == []


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda part: str(part).rpartition("/")[2])
def test_every_test_that_is_named_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))

    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", ["docs/guarantees.md", "docs/maintainers/promises.md", "SECURITY.md"])
def test_links_lead_to_files(page: str) -> None:
    path = ROOT / page
    targets = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))

    assert targets
    assert [target for target in targets if not (path.parent / target).is_file()] == []
