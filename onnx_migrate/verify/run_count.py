"""Counts the runs of a verification and reports each new one to a listener, for example "input 2 of 3, run 5 of 8".

Each call of a thread has its own count, like the stage of `process.mark`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from onnx_migrate.process import say
from onnx_migrate.verify.evaluators.interface import Evaluator

__all__ = ["begin_run", "expect_runs", "run_each", "start_count"]

_count = threading.local()


def start_count(per_input: int = 0) -> None:
    """Count from zero; `per_input` is how many runs each input takes after those of the original."""
    _count.done, _count.total, _count.per_input = 0, 0, per_input


def expect_runs(runs: int, inputs: int = 0, corners: int = 0) -> None:
    """Announce further runs: `runs` of them, and those of the results on so many inputs.

    On each of the `corners` the results run once less, because they run it without optimisation only.
    """
    per_input = getattr(_count, "per_input", 0)
    _count.total = getattr(_count, "done", 0) + runs + inputs * per_input + corners * max(0, per_input - 1)


def begin_run(place: str) -> None:
    """Report that a run begins, with its input, its number, and the number of expected runs."""
    _count.done = getattr(_count, "done", 0) + 1
    total = getattr(_count, "total", 0)
    say(f"{place}, run {_count.done}" + (f" of {total}" if total >= _count.done else ""))


def run_each(
    model: Evaluator, inputs: Sequence[Mapping[str, Any]], only: Iterable[int] | None = None
) -> Iterator[dict[str, Any]]:
    """Run a model on each of these inputs, or on those at the positions `only`, one at a time when the caller needs a result."""
    for index in range(len(inputs)) if only is None else only:
        begin_run(f"input {index + 1} of {len(inputs)}")
        yield model.run(inputs[index])
