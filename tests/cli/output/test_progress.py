"""The stage that runs, shown on a terminal only."""

from __future__ import annotations

import io
import sys
import time

import pytest

from onnx_migrate.cli.output.progress import Progress
from onnx_migrate.process.progress import Progress as Event


class Terminal(io.StringIO):
    """Text that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_stages_are_shown_on_a_terminal_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, shown: bool
) -> None:
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)

    with Progress(quiet) as progress:
        progress("verify")

    assert ("verify" in stream.getvalue()) == shown


def test_an_exception_passes_through_and_the_line_is_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)

    with pytest.raises(KeyError), Progress(quiet=False):
        raise KeyError

    assert stream.getvalue().endswith(("\x1b[2K", "\x1b[?25h")), (
        "the line is erased and the cursor shown again"
    )


def test_of_a_long_stage_the_line_says_how_far_it_has_come_and_for_how_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [100.0]
    monkeypatch.setattr("onnx_migrate.cli.output.progress.time.monotonic", lambda: clock[0])
    progress = Progress(quiet=True)
    progress("verify")
    progress.follow(Event("verify", 1, 1, 0.0, "input 2 of 3, run 5 of 8"))
    clock[0] += 1.9
    assert progress.line == "verify"
    clock[0] += 10.1
    assert progress.line == "verify: input 2 of 3, run 5 of 8, 12 s"
    progress("saving")
    clock[0] += 3
    assert progress.line == "saving: 3 s", "the place was that of another stage"


def test_the_line_on_the_terminal_is_drawn_again_while_a_stage_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("onnx_migrate.cli.output.progress._PATIENCE", 0.05)
    with Progress(quiet=False) as progress:
        progress("verify")
        progress.follow(Event("verify", 1, 1, 0.0, "input 1 of 2, run 3 of 8"))
        end = time.monotonic() + 5
        while "run 3 of 8, 0 s" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.05)
    assert "verify: input 1 of 2, run 3 of 8, 0 s" in stream.getvalue()
