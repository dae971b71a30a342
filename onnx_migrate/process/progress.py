"""The progress of a migration, as values for listeners."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onnx_migrate.process.cancellation import Stopped, check_cancelled, check_stopped

__all__ = ["OWN_STAGES", "Progress", "ProgressListener", "Reporter"]

_RUN = re.compile(r"run (\d+)(?: of (\d+))?$")
"""How the text of a run ends (verify/run_count.py)."""


@dataclass(frozen=True)
class Progress:
    """A stage that begins, or a run that begins within it. As text: "comparing with the original: input 2 of 3, run 5 of 8".

    `title` says in words for users what the stage does. `stage` is its name for programs: "load", the name of a pass, "verify"
    or "prove". It is number `number` of `stages`. `detail` says how far the stage has come, "" as it begins. `done` of `total`
    runs of the stage have ended, as far as is known. `seconds` is the time since the call began.
    """

    stage: str
    number: int
    stages: int
    seconds: float
    detail: str = ""
    done: int | None = None
    total: int | None = None
    title: str = ""

    @property
    def fraction(self) -> float | None:
        """The share of the stage's runs that have ended, from 0 to 1; None if it is unknown."""
        return self.done / self.total if self.done is not None and self.total else None

    def __str__(self) -> str:
        title = self.title or self.stage
        return f"{title}: {self.detail}" if self.detail else title


ProgressListener = Callable[[Progress], object]
"""A function that gets each stage and run as it begins, in the thread of the call; its exceptions end the call."""


OWN_STAGES = {
    "load": "reading the model",
    "verify": "comparing with the original",
    "prove": "running the model in other runtimes",
}
"""The titles of the stages that are no passes."""

_OF_CHILDREN = frozenset({"verify", "prove"})
"""Stages that end in time, since they run models in child processes. A time-out makes the result unverified, and is no error."""


class Reporter:
    """Reports the stages of one call and their runs to a listener; a cancelled call ends at the next report.

    A call whose time is over ends as the next stage of its own work begins. `stages` are the titles of the stages by name.
    """

    def __init__(self, listener: ProgressListener | None, stages: Mapping[str, str]) -> None:
        self._listener = listener
        self._titles = dict(stages)
        self._start = time.perf_counter()
        self._stage = ""

    def stage(self, name: str) -> None:
        """Report the start of a stage. Raises Stopped, also with an error of the listener."""
        if name not in _OF_CHILDREN:
            check_stopped(name)
        self._stage = name
        self._tell()

    def within(self, detail: str) -> None:
        """Report the progress within the stage. Raises as `stage` does."""
        run = _RUN.search(detail)
        finished_rounds, total = (int(run[1]) - 1, int(run[2]) if run[2] else None) if run else (None, None)
        self._tell(detail, finished_rounds, total)

    def _tell(self, detail: str = "", done: int | None = None, total: int | None = None) -> None:
        check_cancelled()
        if self._listener is None:
            return
        title = self._titles.get(self._stage, "")
        try:
            self._listener(Progress(self._stage, *self._place(), self._seconds(), detail, done, total, title))
        except Exception as error:
            raise Stopped(error) from error

    def _place(self) -> tuple[int, int]:
        names = list(self._titles)
        return names.index(self._stage) + 1 if self._stage in names else 0, len(names)

    def _seconds(self) -> float:
        return time.perf_counter() - self._start
