"""Docstrings that are printed are the same where Python drops them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from onnx_migrate import docstrings
from onnx_migrate.docstrings import docstring
from onnx_migrate.engine.steps import step_docs
from onnx_migrate.engine.steps.step_docs import reason_of
from tests.support.paths import ROOT

pytestmark = pytest.mark.cold

PROGRAM = """
from onnx_migrate.engine.pass_registry import builtin_passes
from onnx_migrate.engine.steps.registry import steps
from onnx_migrate.report.data import ReportData
from onnx_migrate.docstrings import docstring
for step in steps()[:200]:
    print(step.operator, step.reason, step.doc)
for item in builtin_passes().values():
    print(docstring(item if isinstance(item, type) else type(item)))
print(docstring(ReportData))
"""


def printed(*flags: str) -> str:
    done = subprocess.run(
        [sys.executable, *flags, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.long
def test_reasons_and_classes_are_the_same_without_docstrings() -> None:
    assert printed() == printed("-OO") != ""


class Base:
    """A base."""


class Derived(Base):
    pass


def plain() -> None:
    pass


@pytest.mark.parametrize(("owner", "text"), [(Base, "A base."), (Derived, "A base."), (plain, "")])
def test_what_has_one(owner: type, text: str) -> None:
    assert docstring(owner) == text


def test_a_step_needs_one() -> None:
    with pytest.raises(ValueError, match="plain needs a docstring"):
        reason_of(plain)


def test_a_program_without_sources_says_where_the_reason_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_docs, "are_dropped", lambda: True)
    monkeypatch.setattr(docstrings, "are_dropped", lambda: True)
    monkeypatch.setattr(
        docstrings.inspect, "getsource", lambda _: (_ for _ in ()).throw(OSError("no source"))
    )
    docstrings._docstrings.cache_clear()
    assert reason_of(plain).startswith(f"{__name__}.plain has the reason in its source")
    docstrings._docstrings.cache_clear()
