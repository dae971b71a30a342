"""How far a migration has come, as values for whoever follows it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onnx_migrate.process.cancellation import Stopped, check_cancelled, check_stopped

__all__ = ["Progress", "ProgressListener", "Reporter"]

_RUN = re.compile(r"run (\d+)(?: of (\d+))?$")
"""How the text of a run ends (verify/run_count.py)."""


@dataclass(frozen=True)
class Progress:
    """A stage that begins, or a run that begins within it. As text: "verify: input 2 of 3, run 5 of 8".

    `stage` is "load", the name of a pass, "verify" or "prove"; it is number `number` of `stages`. `detail` says where in the
    stage it is, "" as the stage begins. `done` of `total` runs of the stage have ended, as far as is known. `seconds` is the
    time since the call began.
    """

    stage: str
    number: int
    stages: int
    seconds: float
    detail: str = ""
    done: int | None = None
    total: int | None = None

    @property
    def fraction(self) -> float | None:
        """The part of the stage's runs that has ended, from 0 to 1; None where it is not known."""
        return self.done / self.total if self.done is not None and self.total else None

    def __str__(self) -> str:
        return f"{self.stage}: {self.detail}" if self.detail else self.stage


ProgressListener = Callable[[Progress], object]
"""What is called as stages and runs begin, in the thread of the call; what it raises ends the call."""


_OF_CHILDREN = frozenset({"verify", "prove"})
"""Stages that end in time by themselves: they run models in child processes. The result is unverified then, and no error."""


class Reporter:
    """Tells a listener of the stages of one call and of the runs within; a cancelled call ends at the next of these.

    A call whose time is over ends as the next stage of its own work begins.
    """

    def __init__(self, listener: ProgressListener | None, stages: Sequence[str]) -> None:
        self._listener = listener
        self._stages = list(stages)
        self._start = time.perf_counter()
        self._stage = ""

    def stage(self, name: str) -> None:
        """Tell that a stage begins. Raises Stopped, also with what the listener raises."""
        if name not in _OF_CHILDREN:
            check_stopped(name)
        self._stage = name
        self._tell(Progress(name, *self._place(), self._seconds()))

    def within(self, detail: str) -> None:
        """Tell where in the stage it is. Raises as `stage` does."""
        run = _RUN.search(detail)
        done, total = (int(run[1]) - 1, int(run[2]) if run[2] else None) if run else (None, None)
        self._tell(Progress(self._stage, *self._place(), self._seconds(), detail, done, total))

    def _tell(self, event: Progress) -> None:
        check_cancelled()
        if self._listener is None:
            return
        try:
            self._listener(event)
        except Exception as error:
            raise Stopped(error) from error

    def _place(self) -> tuple[int, int]:
        known = self._stage in self._stages
        return self._stages.index(self._stage) + 1 if known else 0, len(self._stages)

    def _seconds(self) -> float:
        return time.perf_counter() - self._start
