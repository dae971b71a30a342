"""Two text files show what steps write for samples of their operators, so that a change of a form shows in review."""

from __future__ import annotations

from onnx_migrate.explanation.step_examples import FILE
from onnx_migrate.standard.schema import newest_opset
from tests.harness import SUPPORTED
from tests.support.skips import Elsewhere, skip_if
from tools.steps import examples, written_operators

pytestmark = skip_if(newest_opset() != SUPPORTED, "the newest onnx knows all steps", Elsewhere.NEWEST)


def test_steps_write_the_operators_of_the_file() -> None:
    assert (
        written_operators.FILE.read_text(encoding="utf-8").splitlines()
        == written_operators.text().splitlines()
    ), (
        "first see that a test compares the numbers; if you want this change, run python -m tools.steps.written_operators"
    )


def test_the_examples_of_explain_are_what_steps_do() -> None:
    assert FILE.read_text(encoding="utf-8").splitlines() == examples.text().splitlines(), (
        "if you want this change, run python -m tools.steps.examples"
    )
