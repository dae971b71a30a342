"""The models of a batch that run now: drawn on a terminal, and without one told in a line every 30 seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress
from rich.text import Text

from onnx_migrate.messages import first_of, printable

__all__ = ["RunningModels"]

_SHOWN = 8
"""Number of running models shown on a terminal."""

_NAMED = 3
"""Number of running models that a line names."""

_PERIOD = 30.0
"""Seconds between two lines where there is no terminal: a log stays short, and shows that the batch is alive."""


class RunningModels:
    """Which models run and for how long, how many have ended, and how long the rest may take.

    `limit` is how many seconds a model may take at the most. `clock` returns seconds.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._limit = clock, limit
        self._start = self._last = clock()
        self._since: dict[str, float] = {}
        self._total = self._ended = 0
        self._bar = Progress(BarColumn(), MofNCompleteColumn())
        self._task = self._bar.add_task("", total=None)

    def __len__(self) -> int:
        return len(self._since)

    def plan(self, total: int) -> None:
        """Set how many models there are."""
        self._total, self._start = total, self._clock()
        self._last = self._start
        self._bar.update(self._task, total=total)

    def begin(self, model: str) -> None:
        """Note that a model runs; a second attempt does not start its time anew."""
        self._since.setdefault(model, self._clock())

    def end(self, model: str) -> None:
        """Note that a model has ended."""
        self._since.pop(model, None)
        self._ended += 1
        self._bar.advance(self._task)

    def due_line(self) -> str:
        """Return a line where 30 seconds have passed since the last one, else ""."""
        now = self._clock()
        if now - self._last < _PERIOD:
            return ""
        self._last = now
        names = [f"{printable(model)} ({now - since:.0f} s)" for model, since in self._longest_first()]
        running = f"; running: {first_of(names, _NAMED)}" if names else ""
        return (
            f"{self._ended} of {self._total} models after {now - self._start:.0f} s{running}{self._rest(now)}"
        )

    def picture(self) -> Group:
        """Return what a terminal shows: the running models, each with its time, above the bar."""
        now, names = self._clock(), self._longest_first()
        lines = [
            Text(f"  {_clock_text(now - since)}  {printable(model)}", style="dim") for model, since in names
        ]
        more = [Text(f"  … and {len(names) - _SHOWN} more", style="dim")] if len(names) > _SHOWN else []
        rest = Text(f"{_clock_text(now - self._start)} so far{self._rest(now)}", style="dim")
        return Group(*lines[:_SHOWN], *more, self._bar, rest)

    def _longest_first(self) -> list[tuple[str, float]]:
        return sorted(self._since.items(), key=lambda entry: entry[1])

    def _rest(self, now: float) -> str:
        """Return how long the rest takes: at the rate so far, or if all models have begun, at the most."""
        waiting = self._total - self._ended - len(self._since)
        if waiting and self._ended:
            return f"; about {_clock_text((now - self._start) / self._ended * waiting)} more"
        if waiting or not self._since:
            return ""
        most = max(self._limit - (now - since) for since in self._since.values())
        return f"; at most {_clock_text(max(0.0, most))} more"


def _clock_text(seconds: float) -> str:
    """Return seconds as a clock shows them, as in "1:05" and "1:00:05"."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
