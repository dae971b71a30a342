"""A system that starts no process, thread or file: the error names the reason and what helps, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from onnx_migrate.errors import MigrateError
from onnx_migrate.process import Returned, Workers, call_in_fork, forked, run, using
from onnx_migrate.process.refusals import starting
from tests.support.warm_start import WarmPopen


@pytest.fixture(autouse=True)
def from_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(WarmPopen, "on", False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def refusing(number: int) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize(
    ("number", "helps"),
    [
        (errno.EAGAIN, "ulimit -u"),
        (errno.ENOMEM, "memory"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EPERM, "sandbox"),
    ],
)
def test_no_process(number: int, helps: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "fork", refusing(number))
    monkeypatch.setattr(subprocess, "Popen", refusing(number))
    monkeypatch.setattr(forked, "_kept", [])
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for call in (
        lambda: call_in_fork("os:getpid", seconds=5.0, memory=1 << 28),
        lambda: run("os:getpid"),
    ):
        with using(Workers()), pytest.raises(MigrateError, match=os.strerror(number)) as caught:
            call()
        assert caught.value.code == "no-process"
        assert helps in caught.value.hint
    assert os.listdir(tmp_path) == []
    assert not files or len(os.listdir("/proc/self/fd")) == files


@pytest.mark.parametrize(
    ("words", "helps"),
    [
        ("can't start new thread", "ulimit -u"),
        ("can't create new thread at interpreter shutdown", "before the program ends"),
    ],
)
def test_no_thread(words: str, helps: str) -> None:
    with pytest.raises(MigrateError, match=words) as caught, starting():
        raise RuntimeError(words)
    assert helps in caught.value.hint


def test_an_idle_worker_is_not_kept_where_no_thread_can_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    workers = Workers(idle=60.0)
    monkeypatch.setattr("onnx_migrate.process.workers.start_blocked", refuse)
    with using(workers):
        assert isinstance(run("os:getpid"), Returned)
    assert workers._waiting == []


def test_a_call_needs_no_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_migrate.process.worker.TemporaryFolder", refusing(errno.EROFS))
    monkeypatch.setattr(tempfile, "TemporaryFile", refusing(errno.EROFS))
    workers = Workers()
    with using(workers):
        assert run("builtins:abs", -3) == Returned(3)
    workers.close()
