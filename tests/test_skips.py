"""Tests skip for the reasons that are listed, and for no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
