"""Workers of this machine."""

from __future__ import annotations

import signal
import sys

import pytest

from onnx_migrate.batching.pool import LocalPool


@pytest.mark.skipif(sys.platform == "win32", reason="no signal masks there")
def test_workers_are_deaf_to_ctrl_c_before_they_can_say_so() -> None:
    """What a terminal sends while a worker starts would be a traceback; the mask comes from the parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    pool = LocalPool(1)
    try:
        assert signal.SIGINT in pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result(60)
    finally:
        pool.shutdown(cancel_futures=True)

    assert signal.SIGINT not in before
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
