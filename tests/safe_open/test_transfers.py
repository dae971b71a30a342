"""Transfers that stall, trickle or never end are given up."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files import load, save
from onnx_migrate.safe_open import transfers
from onnx_migrate.safe_open.transfers import (
    StalledError,
    StoppedError,
    Transfer,
    seconds_for_transfers,
    transfers_within,
)
from tests.files.conftest import store
from tests.files.feature_models import plain

__all__ = ["store"]


def test_the_value_or_the_error_of_the_call_comes_back() -> None:
    assert Transfer().run(lambda: 3) == 3
    with pytest.raises(KeyError, match="x"):
        Transfer().run(lambda: {}["x"])


def test_a_call_that_never_returns_is_given_up_and_one_that_is_fast_is_not() -> None:
    never = threading.Event()
    with transfers_within(0.2):
        assert seconds_for_transfers() == 0.2
        start = time.monotonic()
        with pytest.raises(StoppedError, match=r"has not ended after 0 s, at 5 bytes"):
            Transfer().run(never.wait, size=lambda: 5)
        assert time.monotonic() - start < 5
        # It has more time for a megabyte.
        assert Transfer().run(lambda: time.sleep(0.6) or 1, size=lambda: 1 << 20) == 1
    never.set()


@pytest.mark.long
def test_a_download_that_hardly_moves_is_given_up_before_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a server that sends a byte a second; what the callback is told of counts, as a file may be written later."""
    monkeypatch.setattr(transfers, "_STALL", 0.3)
    never, sizes = threading.Event(), iter(range(1, 1_000_000))
    start = time.monotonic()
    with pytest.raises(StalledError, match=r"it stalls: \d+ bytes came in the last 0.3 s, at \d+ bytes"):
        Transfer().run(never.wait, size=lambda: next(sizes), may_stall=False)
    assert time.monotonic() - start < 5

    steady = Transfer()

    def told() -> int:
        callback = steady.callback()
        for _ in range(10):
            time.sleep(0.1)
            callback.relative_update(1 << 16)
        return 1

    assert steady.run(told, may_stall=False) == 1
    with transfers_within(1), pytest.raises(StoppedError, match="has not ended"):
        Transfer().run(never.wait, size=lambda: 5)
    never.set()


def test_what_is_too_large_or_enough_ends_it() -> None:
    never = threading.Event()
    with pytest.raises(StoppedError, match="more than 9 bytes"):
        Transfer().run(never.wait, size=lambda: 10, largest=9)
    assert Transfer().run(never.wait, enough=lambda: True) is None
    never.set()


def test_what_was_given_up_ends_at_the_next_bytes() -> None:
    transfer, ended, go = Transfer(), threading.Event(), threading.Event()

    def call() -> None:
        go.wait()
        try:
            transfer.callback().relative_update(5)
        except StoppedError:
            ended.set()

    with transfers_within(0.05), pytest.raises(StoppedError):
        transfer.run(call)
    go.set()
    assert ended.wait(5)


@pytest.fixture
def stalled(monkeypatch: pytest.MonkeyPatch) -> Any:
    """memory:// begins transfers and does not go on; a second passes once one has begun."""
    begun, never = threading.Event(), threading.Event()

    def get_file(self: Any, rpath: str, lpath: str, **_: Any) -> None:
        Path(lpath).write_bytes(plain().SerializeToString()[:100])
        put_file()

    def put_file(*_: Any, **__: Any) -> None:
        begun.set()
        never.wait()

    monkeypatch.setattr(MemoryFileSystem, "get_file", get_file)
    monkeypatch.setattr(MemoryFileSystem, "put_file", put_file)
    monkeypatch.setattr(transfers, "monotonic", lambda: float(begun.is_set()))
    yield
    never.set()
    for thread in threading.enumerate():
        if thread.name == "onnx-migrate transfer":
            thread.join(10)  # it holds the folder that it was to write into


def test_a_stalled_download_is_one_line(store: Any, stalled: None) -> None:
    store.pipe("/m/a.onnx", plain().SerializeToString())
    with transfers_within(0.2), pytest.raises(LoadError, match=r"has not ended .* at 100 bytes") as caught:
        load("memory://m/a.onnx")
    assert caught.value.code == "timed-out"
    assert "--timeout" in caught.value.hint
    caught.value.__traceback__ = None


def test_a_stalled_upload_leaves_what_was_there(store: Any, stalled: None) -> None:
    store.pipe("/m/a.onnx", b"old")
    with transfers_within(0.2), pytest.raises(SaveError, match="has not ended") as caught:
        save(load(plain()), "memory://m/a.onnx")
    assert caught.value.code == "timed-out"
    assert store.cat("/m/a.onnx") == b"old"
    caught.value.__traceback__ = None
