"""docs/runtimes.md is what the table of runtimes contains."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.spec.runtimes import TABLE, Runtime
from tests.docs.runtimes_page import PAGE, TITLES, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.runtimes_page"


@pytest.mark.parametrize("row", [row for rows in TABLE.values() for row in rows], ids=str)
def test_every_row_is_on_the_page(row: Runtime) -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"## {TITLES[row.name]}\n")
    release = re.escape(".".join(map(str, row.release)))
    version = rf" {row.ir_version} \|" if row.ir_version else ""

    assert re.search(
        rf"^\| {release} \| {row.opset} \|{version} {row.resize_form}", section.partition("## ")[0], re.M
    )
