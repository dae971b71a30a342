"""The process that tests fork others from imports modules that exist, and what it forks is as what starts from nothing."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.skips import Elsewhere, skip_if
from tests.support.warm_server import MODULES
from tests.support.warm_start import WarmPopen, warm


@pytest.mark.parametrize("name", MODULES)
def test_what_is_imported_before_the_forks_exists(name: str) -> None:
    assert find_spec(name) is not None  # a name that does not exist is slow, and says nothing


SEEN = """
import os, sys
print(os.getcwd(), sys.argv, sys.path, __name__, sys.stdin.read(), *sys.warnoptions, flush=True)
print("told", file=sys.stderr)
raise SystemExit(7)
"""


@skip_if(sys.platform != "linux", "processes are forked on Linux alone", Elsewhere.LINUX)
def test_a_program_sees_what_it_sees_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended() -> tuple[int, str, str]:
        command = [sys.executable, "-c", warm(SEEN), "one", "two"]
        done = subprocess.run(command, cwd=tmp_path, input="given", capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    forked = ended()
    monkeypatch.setattr(WarmPopen, "on", False)

    assert forked == ended()
    assert forked[0] == 7
