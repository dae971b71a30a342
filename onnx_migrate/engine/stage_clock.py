"""The time that each stage of a migration takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["StageClock"]


class StageClock:
    """Times the stages and passes the name of each to `progress` as it begins."""

    def __init__(self, progress: Callable[[str], None] | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress or (lambda stage: None)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Time a block under the name of `stage`."""
        self._progress(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - start
