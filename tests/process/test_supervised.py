"""A child under watch: its folder, its log, its time limit and its ending."""

from __future__ import annotations

import os
import sys

import pytest

from onnx_migrate.process.endings import Crashed, TimedOut
from onnx_migrate.process.supervised import Supervised


def child(program: str) -> Supervised:
    return Supervised([sys.executable, "-c", program], os.environ, None, in_folder=True)


def test_a_child_that_is_too_slow_is_killed_and_its_folder_is_removed() -> None:
    own = child("import sys, time; print('here', file=sys.stderr, flush=True); time.sleep(60)")
    assert own.folder.is_dir()
    assert own._process.stdout is not None
    with own._killed_after(0.5):
        assert own._process.stdout.read() == b""
    ending = own._ended(0.5, 0)
    own.close()

    assert isinstance(ending, TimedOut)
    assert not own.folder.exists()


def test_a_child_that_ends_leaves_its_code_and_what_it_printed() -> None:
    own = child("import sys; sys.exit('no such thing')")
    ending = own._ended(None, 0)
    own.close()

    assert isinstance(ending, Crashed)
    assert "no such thing" in ending.log
    assert "exit code 1" in str(ending)


def test_a_command_that_cannot_run_is_an_error() -> None:
    with pytest.raises(OSError, match="none"):
        Supervised(["/none/such"], os.environ, None)
