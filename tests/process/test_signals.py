"""Signals blocked for the duration of a block."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from onnx_migrate.process.signals import blocked


@pytest.mark.skipif(sys.platform == "win32", reason="no signal masks there")
def test_a_signal_is_delivered_when_the_block_ends() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    try:
        with blocked(signal.SIGUSR1):
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)  # other threads do not hold it
            assert came == []
        assert came == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)
