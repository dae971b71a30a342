"""Signals that wait."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from onnx_migrate.signals import held


@pytest.mark.skipif(sys.platform == "win32", reason="no signal masks there")
def test_a_signal_comes_when_the_block_ends() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    try:
        with held(signal.SIGUSR1):
            os.kill(os.getpid(), signal.SIGUSR1)
            assert came == []
        assert came == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)
