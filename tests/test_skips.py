"""Tests skip for the reasons that are listed, and for no others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.other_kernels import OTHER_KERNELS
from tests.support.paths import ROOT
from tests.support.skips import unknown


@pytest.mark.parametrize(("reason", "code"), [("Chromium is not installed", 0), ("it is Monday", 1)])
def test_a_run_fails_where_a_test_skips_for_another_reason(reason: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import *\nfrom tests.conftest import pytest_sessionfinish\n"
    )
    (tmp_path / "test_it.py").write_text(f"import pytest\n\ndef test_it():\n    pytest.skip({reason!r})\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == code, done.stdout
    assert ("  it is Monday" in done.stdout) == bool(code)


def test_reasons_are_known_by_how_they_begin() -> None:
    assert unknown(["Chromium is not installed", "onnx 1.16.0 has no UINT4", "new"]) == ["new"]


def _said(node: ast.expr | None) -> Iterator[str]:
    """Yield the texts that an expression may give, as far as they stand in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_said(node.body), *_said(node.orelse))
    elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "1.0" for part in node.values)


OF_OTHER_SYSTEMS = re.compile(r"platform|hasattr|the system |Linux")
"""What a condition or its reason names where it asks for the system: on Linux it does not skip."""

ALWAYS_THERE = ("onnxruntime", "onnxsim", "resource")


def _reasons(path: Path) -> Iterator[str]:
    """Yield the reasons of the skips in a file that stand there as texts, and that may come on Linux."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text if "skip" in text else "")):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name, first = node.func.attr, node.args[0] if node.args else None
        if name == "skip":
            yield from _said(first)
        elif name == "importorskip":
            modules = (text for text in _said(first) if text.partition(".")[0] not in ALWAYS_THERE)
            yield from (f"could not import '{module}'" for module in modules)
        elif name == "skipif" and first is not None and not OF_OTHER_SYSTEMS.search(ast.unparse(node)):
            yield from (
                text for given in node.keywords if given.arg == "reason" for text in _said(given.value)
            )


def test_every_reason_in_the_tests_is_listed() -> None:
    """A run sees those of its releases and machine alone."""
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__)]
    assert sorted({(path.name, text) for path in files for text in _reasons(path) if unknown([text])}) == []


def test_the_tests_of_other_kernels_exist() -> None:
    """One under another name would run with old releases, and fail there alone."""
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        place = f"{path.parent.name}/{path.stem}"
        if place in OTHER_KERNELS:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found |= {(place, node.name) for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {(place, name) for place, names in OTHER_KERNELS.items() for name in names} - found == set()


def test_the_tests_that_ci_names_exist() -> None:
    named = re.findall(r"\btests/[\w/.]+", (ROOT / ".ci" / "run").read_text(encoding="utf-8"))
    assert len(named) > 8
    assert [place for place in named if not (ROOT / place).exists()] == []
