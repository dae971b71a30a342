"""The interpreter of child processes, in programs that embed Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from onnx_migrate.errors import MigrateError
from onnx_migrate.process import Returned, Worker, worker
from onnx_migrate.process.interpreter import interpreter
from tests.support.skips import Elsewhere, skip_if


def test_it_is_that_of_this_process() -> None:
    assert interpreter() == sys.executable


@pytest.mark.parametrize("path", [None, "", "/bin/true", "/no/such/python"])
def test_it_is_found_where_the_host_does_not_name_it(
    path: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", path)
    monkeypatch.setattr(sys, "_base_executable", path, raising=False)
    found = interpreter()
    assert found is not None
    assert Path(found).name.startswith("python")


def test_a_frozen_program_does_not_start_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert interpreter() is None


@skip_if(sys.platform != "linux", "copies are made on Linux alone", Elsewhere.LINUX)
def test_a_frozen_program_has_copies_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with Worker() as child:
        assert child.call("builtins:abs", -3) == Returned(3)


def test_elsewhere_it_is_told_why_it_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(worker.sys, "platform", "darwin")
    with pytest.raises(MigrateError, match="embeds Python") as caught:
        Worker()
    assert caught.value.code == "no-process"
    assert "isolated=False" in caught.value.hint
