"""The reports of some migrations are those of a text file, so that a changed sentence shows in review."""

from __future__ import annotations

import pytest

from onnx_migrate.standard.schema import newest_opset
from tests.harness import SUPPORTED
from tests.support.skips import Elsewhere, skip_if
from tools import report_texts

pytestmark = skip_if(newest_opset() != SUPPORTED, "the newest releases wrote the file", Elsewhere.NEWEST)

RECORDED = {
    part.partition("\n")[0]: f"== {part}"
    for part in report_texts.FILE.read_text(encoding="utf-8").split("== ")[1:]
}


@pytest.mark.parametrize("title", report_texts.MIGRATIONS)
def test_a_report_says_what_the_file_says(title: str) -> None:
    report = report_texts.section(title)
    assert report.splitlines() == RECORDED[title].splitlines(), (
        "if you want this change, run python -m tools.report_texts"
    )


def test_the_file_has_no_other_report() -> None:
    assert list(RECORDED) == list(report_texts.MIGRATIONS)
