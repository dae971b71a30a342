"""Limits of memory: what a process starts may by default have no more than the process itself may."""

from __future__ import annotations

import sys

from onnx_migrate.process import Limits, Returned, Worker
from tests.support.skips import Elsewhere, skip_if

pytestmark = skip_if(sys.platform != "linux", "only Linux limits private memory", Elsewhere.LINUX)

GIGABYTE = 1 << 30


def default_of_a_child() -> int | None:
    """Return the default limit of what the process of this call would start."""
    return Limits().memory


def test_a_worker_with_a_share_starts_nothing_with_more_than_that() -> None:
    machine = Limits().memory or 0
    with Worker(GIGABYTE) as worker:
        ending = worker.call(f"{__name__}:default_of_a_child")
    assert isinstance(ending, Returned)
    assert ending.value == GIGABYTE < machine


def test_a_limit_that_is_asked_for_stays() -> None:
    assert Limits.of(1.0, 5).memory == 5
