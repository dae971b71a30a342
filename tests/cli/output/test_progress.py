"""The stage that runs, shown on a terminal only."""

from __future__ import annotations

import io
import sys

import pytest

from onnx_migrate.cli.output.progress import Progress


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
