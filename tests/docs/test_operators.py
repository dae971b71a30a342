"""docs/operators.md and docs/operators-down.md are what the registries of steps contain."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.standard.schema import newest_opset
from tests.harness import SUPPORTED
from tests.support.skips import Elsewhere, skip_if
from tools.pages import operators_down_page, operators_page
from tools.pages.step_pages import slug

pytestmark = skip_if(
    newest_opset() != SUPPORTED,
    "the page is written with the newest onnx, which knows all steps",
    Elsewhere.NEWEST,
)

BOTH = pytest.mark.parametrize("module", [operators_page, operators_down_page])


@BOTH
def test_the_page_is_up_to_date(module) -> None:  # type: ignore[no-untyped-def]
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), f"run python -m {module.__name__}"


@BOTH
def test_every_step_is_on_the_page(module) -> None:  # type: ignore[no-untyped-def]
    text = module.PAGE.read_text(encoding="utf-8")

    for step in steps(Direction.UP if module is operators_page else Direction.DOWN):
        assert step.operator in text
        assert (step.refusal or step.reason).replace("|", "\\|") in text.replace("\n", " ")


@BOTH
def test_every_link_has_a_target(module) -> None:  # type: ignore[no-untyped-def]
    text = module.PAGE.read_text(encoding="utf-8")
    headings = {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}

    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= headings
