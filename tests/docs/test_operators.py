"""docs/operators.md is what the registry contains."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.standard.schema import newest_opset
from tests.docs.operators_page import PAGE, page
from tests.docs.step_pages import slug
from tests.harness import SUPPORTED

pytestmark = pytest.mark.skipif(
    newest_opset() != SUPPORTED, reason="the page is written with the newest onnx, which knows all steps"
)


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.docs.operators_page"


def test_every_adapter_and_refusal_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")

    for step in steps():
        assert step.operator in text
        assert (step.refusal or step.reason).replace("|", "\\|") in text.replace("\n", " ")


def test_every_link_has_a_target() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}

    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= headings
