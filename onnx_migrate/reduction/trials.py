"""Checks candidates: several at once, each once only, until the time is over."""

from __future__ import annotations

import contextvars
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from onnx_migrate.process import seconds_left
from onnx_migrate.process.cancellation import check_cancelled
from onnx_migrate.reduction.candidate import Candidate, node_count
from onnx_migrate.reduction.checks import Check, Runner
from onnx_migrate.reduction.failures import Failure, KeptFailure
from onnx_migrate.reduction.validity import fault_of

__all__ = ["Listener", "TimeOver", "Trials"]

Listener = Callable[[str], object]
"""Receives the progress as a text."""


class TimeOver(Exception):
    """The time for the search is over."""


class _Lane:
    """A runner, with `threaded` in a thread of its own: a process of a runtime ends with the thread that started it.

    A single lane has no thread, because a process without threads starts children as copies of itself, which is faster.
    """

    def __init__(self, check: Check, *, threaded: bool) -> None:
        self._check = check
        self._runner: Runner | None = None
        self._threads = ThreadPoolExecutor(1) if threaded else None

    def submit(self, candidate: Candidate) -> Future[Failure | None]:
        """Check a candidate, in the thread if there is one."""
        if self._threads is not None:
            return self._threads.submit(contextvars.copy_context().run, self._failure, candidate)
        finished: Future[Failure | None] = Future()
        finished.set_result(self._failure(candidate))
        return finished

    def _failure(self, candidate: Candidate) -> Failure | None:
        if self._runner is None:
            self._runner = self._check.runner()
        return self._runner.failure(candidate)

    def close(self) -> None:
        """End the runner and the thread."""
        if self._runner is not None:
            closing = self._runner.close
            closing() if self._threads is None else self._threads.submit(closing).result()
        if self._threads is not None:
            self._threads.shutdown()


class Trials:
    """Checks candidates against one failure; a context manager. `best` is the smallest model so far that shows it."""

    def __init__(
        self, check: Check, jobs: int = 1, seconds: float = float("inf"), listen: Listener | None = None
    ) -> None:
        self._lanes = [_Lane(check, threaded=jobs > 1) for _ in range(jobs)]
        self._results: dict[bytes, Failure | None] = {}
        self._listen = listen or (lambda _: None)
        self._start = time.monotonic()
        self._seconds = seconds
        self.jobs = jobs
        self.runs = self.cached = self.invalid = 0
        self.kept: KeptFailure | None = None
        self.best: Candidate | None = None
        self.checks_validity = True
        """Whether onnx's checker decides which candidates are valid; not if it refuses the original."""

    def __enter__(self) -> Trials:
        return self

    def __exit__(self, *error: object) -> None:
        for lane in self._lanes:
            lane.close()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self._start

    def failures(self, candidates: Sequence[Candidate]) -> list[Failure | None]:
        """Return how each candidate fails, at most as many as there are jobs. Raises TimeOver."""
        check_cancelled()
        if self.seconds > self._seconds or not seconds_left():
            raise TimeOver
        waiting: dict[bytes, Future[Failure | None]] = {}
        for candidate in candidates:
            if candidate.key in self._results or candidate.key in waiting:
                self.cached += 1
            else:
                waiting[candidate.key] = self._lanes[len(waiting) % self.jobs].submit(candidate)
        for key, future in waiting.items():
            self._results[key] = future.result()
            self.runs += 1
        self._say()
        return [self._results[candidate.key] for candidate in candidates]

    def again(self, candidate: Candidate) -> Failure | None:
        """Return how a candidate fails in a new run."""
        self.runs += 1
        return self._lanes[0].submit(candidate).result()

    def failure_of(self, candidate: Candidate) -> Failure | None:
        """Return how a candidate failed when it was checked; None if it was not."""
        return self._results.get(candidate.key)

    def _say(self) -> None:
        best = f"{node_count(self.best.proto)} nodes, " if self.best is not None else ""
        self._listen(f"{best}{self.runs} runs")

    def fail(self, candidates: Sequence[Candidate | None]) -> list[bool]:
        """Return which candidates are valid and show the failure. Raises TimeOver."""
        valid = [candidate for candidate in candidates if candidate is not None and self._is_valid(candidate)]
        failures = dict(zip(map(id, valid), self.failures(valid), strict=True))
        assert self.kept is not None
        shown = [
            candidate is not None and self.kept.is_same(failures.get(id(candidate)))
            for candidate in candidates
        ]
        for candidate, is_shown in zip(candidates, shown, strict=True):
            if is_shown and candidate is not None and (self.best is None or candidate.size < self.best.size):
                self.best = candidate
        return shown

    def _is_valid(self, candidate: Candidate) -> bool:
        if candidate.key in self._results or not self.checks_validity:
            return True
        valid = not fault_of(candidate.proto)
        self.invalid += not valid
        return valid

    def first(self, candidates: Iterable[Candidate | None]) -> tuple[int, Candidate] | None:
        """Return the first candidate that shows the failure, with its position; None if none does. Raises TimeOver."""
        for start, batch in _batches(candidates, self.jobs):
            for index, (candidate, fails) in enumerate(zip(batch, self.fail(batch), strict=True)):
                if fails and candidate is not None:
                    return start + index, candidate
        return None

    def accepts(self, candidate: Candidate | None) -> bool:
        """Return whether one candidate shows the failure. Raises TimeOver."""
        return candidate is not None and self.first([candidate]) is not None


def _batches(
    candidates: Iterable[Candidate | None], size: int
) -> Iterator[tuple[int, list[Candidate | None]]]:
    """Yield the candidates in groups, each with the position of its first."""
    source, start = iter(candidates), 0
    while batch := list(islice(source, size)):
        yield start, batch
        start += len(batch)
