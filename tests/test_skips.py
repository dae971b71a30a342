"""Tests skip for the reasons that are listed, and for no others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.other_kernels import OTHER_KERNELS
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if, without_run


@pytest.mark.parametrize(
    ("call", "code"),
    [('skips.skip("no Chromium", skips.Elsewhere.INSTALLED)', 0), ('pytest.skip("it is Monday")', 1)],
)
def test_a_run_fails_where_a_skip_names_no_other_run(call: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import *\nfrom tests.conftest import pytest_sessionfinish\n"
    )
    head = "import pytest\nfrom tests.support import skips\n\ndef test_it():\n    "
    (tmp_path / "test_it.py").write_text(head + call)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == code, done.stdout
    assert "test_it.py:5: " in done.stdout  # the place of the call, not that of `skip`
    assert ("\n  it is Monday" in done.stdout) == bool(code)


def test_reasons_end_with_the_run_that_covers_the_test() -> None:
    mark = skip_if(True, "onnx 1.16 has no UINT4", Elsewhere.NEWEST)
    assert without_run([mark.kwargs["reason"], "new"]) == ["new"]


def test_no_test_skips_by_pytest_alone() -> None:
    """A run sees the skips of its releases and machine alone."""
    own = {ROOT / "tests" / "support" / "skips.py", Path(__file__)}
    call = re.compile(r"pytest\.(skip\(|importorskip|mark\.skip)")
    texts = {
        path: path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py") if path not in own
    }
    assert [path.name for path, text in texts.items() if call.search(text)] == []


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
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    (left_out,) = re.findall(r"OF_NEWEST = \((.*?)\n\)", text, re.DOTALL)
    named = [
        *re.findall(r'"(tests/[\w/.]+)"', text),
        *(f"tests/{name}" for name in re.findall(r'"(.+?)"', left_out)),
    ]
    assert len(named) > 25
    assert [path for path in named if not (ROOT / path).exists()] == []
