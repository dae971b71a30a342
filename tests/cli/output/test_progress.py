"""The line of a command that runs: its stage with its number, its time, and without a terminal a line every 30 seconds."""

from __future__ import annotations

import io
import threading
import time

import pytest

from onnx_migrate.cli.output import heartbeat
from onnx_migrate.cli.output.heartbeat import Heartbeat
from onnx_migrate.cli.output.progress import ProgressLine
from onnx_migrate.cli.process_limits import limited
from onnx_migrate.errors import MigrateError
from onnx_migrate.process.progress import Progress


def wait_for(text: str, capfd: pytest.CaptureFixture[str]) -> str:
    found, end = "", time.monotonic() + 5
    while text not in found and time.monotonic() < end:
        time.sleep(0.01)
        found += capfd.readouterr().err
    return found


def test_a_stage_has_its_number() -> None:
    progress = ProgressLine(quiet=True)
    progress.follow(Progress("cleanup", 3, 8, 0.0))
    assert progress.line.startswith("stage 3 of 8, ")
    progress.follow(Progress("verify", 1, 1, 0.0))
    assert "stage" not in progress.line
    progress.follow(Progress("other", 0, 8, 0.0))
    assert "stage" not in progress.line


def test_every_stage_begins_by_its_name() -> None:
    progress, begun = ProgressLine(quiet=True), []
    progress.begins = begun.append
    progress("saving")
    progress.follow(Progress("verify", 2, 3, 0.0))
    progress.follow(Progress("verify", 2, 3, 0.0, "run 1 of 3"))
    assert begun == ["saving", "verify"]


def test_without_a_terminal_a_line_is_written_again_and_again(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(heartbeat, "_PERIOD", 0.02)
    monkeypatch.setattr(Heartbeat.__init__, "__defaults__", (0.02,))
    monkeypatch.setattr("onnx_migrate.cli.output.progress._PATIENCE", 0.01)
    threads = threading.active_count()
    with ProgressLine(quiet=False) as progress:
        progress.follow(Progress("verify", 7, 8, 0.0))
        progress.follow(Progress("verify", 7, 8, 0.0, "run 5 of 8"))
        assert threading.active_count() == threads, "workers are copies only of a process with one thread"
        found = wait_for("run 5 of 8, 0 s\n", capfd)
    assert "onnx-migrate: stage 7 of 8, " in found
    time.sleep(0.03)
    capfd.readouterr()
    time.sleep(0.06)
    assert not capfd.readouterr().err, "it ends with the block"


def test_no_control_character_gets_into_a_log(capfd: pytest.CaptureFixture[str]) -> None:
    with Heartbeat(lambda: "alive\x1b[2J", period=0.01):
        assert "alive\\x1b[2J\n" in wait_for("2J", capfd)


def test_a_time_limit_of_the_command_still_ends_it() -> None:
    """The limit has SIGALRM, which the line must leave alone."""
    with (
        pytest.raises(MigrateError, match="timed out after"),
        Heartbeat(lambda: "", period=60),
        limited(0.05, None),
    ):
        time.sleep(5)


@pytest.mark.parametrize("quiet", [True, False])
def test_a_quick_command_writes_nothing(quiet: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with ProgressLine(quiet) as progress:
        progress("saving")
    assert capfd.readouterr().err == ""


def test_a_log_that_nobody_reads_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_descriptor: int, _text: bytes) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(heartbeat.os, "write", broken)
    with Heartbeat(lambda: "alive", period=0.01):
        time.sleep(0.05)


def test_a_stream_without_an_encoding_gets_the_line_too(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with Heartbeat(lambda: "alive", period=0.01):
        assert "alive" in wait_for("alive", capfd)
