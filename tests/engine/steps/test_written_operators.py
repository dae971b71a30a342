"""The operators that steps write for each sample are those of a text file, so that a change of a form shows in review."""

from __future__ import annotations

from onnx_migrate.standard.schema import newest_opset
from tests.harness import SUPPORTED
from tests.support.skips import Elsewhere, skip_if
from tools.steps import written_operators

pytestmark = skip_if(newest_opset() != SUPPORTED, "the newest onnx knows all steps", Elsewhere.NEWEST)


def test_steps_write_the_operators_of_the_file() -> None:
    assert (
        written_operators.FILE.read_text(encoding="utf-8").splitlines()
        == written_operators.text().splitlines()
    ), "if you want this change, run python -m tools.steps.written_operators"
