"""The ways in which a test may skip. Each names the run that covers the test instead."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, NoReturn

import pytest

__all__ = ["Elsewhere", "import_or_skip", "skip", "skip_if", "without_run"]


class Elsewhere(Enum):
    """The run in which a test runs that skips elsewhere, as a clause of the reason."""

    NEWEST = "`.ci/run` runs it with the newest releases"
    ONE_RELEASE = "`.ci/run` runs it with ONNX Runtime 1.31"
    INSTALLED = "`.ci/run` installs it and runs the test"
    LINUX = "it runs on Linux"
    ROOT = "it runs for a root who may mount folders"
    ONLINE = "it runs if PyPI and pyenv have the releases"
    BY_HAND = "CONTRIBUTING.md has the command that runs it"
    NEVER = "no run covers it, because nothing could run"


def skip(reason: str, run: Elsewhere, *, module: bool = False) -> NoReturn:
    """Skip the running test, or with `module` all tests of the file that calls this."""
    __tracebackhide__ = True  # the report then names the line of the test
    pytest.skip(_text(reason, run), allow_module_level=module)


def skip_if(condition: bool, reason: str, run: Elsewhere) -> pytest.MarkDecorator:
    """Return the mark of a test that skips if the condition holds."""
    return pytest.mark.skipif(condition, reason=_text(reason, run))


def import_or_skip(module: str, run: Elsewhere) -> Any:
    """Return a module; if it is not installed, skip the running test or the file that calls this."""
    __tracebackhide__ = True
    return pytest.importorskip(module, reason=_text(f"{module} is not installed", run))


def without_run(reasons: Iterable[str]) -> list[str]:
    """Return the reasons that name no run."""
    ends = tuple(f": {run.value}" for run in Elsewhere)
    return sorted({reason for reason in reasons if not reason.endswith(ends)})


def _text(reason: str, run: Elsewhere) -> str:
    return f"{reason}: {run.value}"
