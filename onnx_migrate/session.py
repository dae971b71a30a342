"""A session: migrations and comparisons that share warm child processes."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from onnx_migrate import files
from onnx_migrate.comparison import compare
from onnx_migrate.errors import UsageError
from onnx_migrate.files import GivenModel as M
from onnx_migrate.migration import Migration, migrate
from onnx_migrate.model.model import Model
from onnx_migrate.process import Workers, check_cancelled, stoppable, using
from onnx_migrate.verdicts import Verdict

__all__ = ["Session"]

_PAUSE = 0.05
"""Seconds between two checks of the token of a waiting call."""


class Session:
    """Child processes that stay alive from one call to the next, and end with the session, which is a context manager.

    Threads may share it. `jobs` is how many calls run at a time, by default the number of cores. Each call has up to two
    children; further calls wait. The time of a call begins when it runs. If a model ends a child, or a child keeps more than
    256 MB, a new child replaces it. Limits of time and memory apply to each call. Without a session, `migrate` and `compare`
    keep their children too, until they have been idle for a minute or the process ends.
    """

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise UsageError(f"jobs={jobs} is no number of calls", hint="give 1 or more, or leave it out")
        most = jobs or os.cpu_count() or 1
        self._workers, self._most = Workers(most=2 * most), most
        self.renew_places()
        _sessions.add(self)
        weakref.finalize(self, self._workers.close)  # where nobody closes it

    def renew_places(self) -> None:
        """Let as many calls begin as if none ran."""
        self._places = threading.Semaphore(self._most)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the children, even busy ones: running calls raise Cancelled, and later calls UsageError."""
        self._workers.close()

    def migrate(self, source: M | files.Content | Model, **options: Any) -> Migration[M]:
        """Migrate a model as `onnx_migrate.migrate` does, with its keywords, and raise as it does."""
        with self._place(options):
            return migrate(source, **options)

    def compare(self, original: files.Source, other: files.Source, **options: Any) -> Verdict:
        """Compare two models as `onnx_migrate.compare` does, with its keywords, and raise as it does."""
        with self._place(options):
            return compare(original, other, **options)

    @contextmanager
    def _place(self, options: Mapping[str, Any]) -> Iterator[None]:
        """Wait for one of the places: a token ends the wait, and the time of the call begins after it.

        Raises UsageError if the session is closed, and the errors of `migrate` for a stop.
        """
        slots = self._places
        with stoppable(options.get("cancel")):
            while not slots.acquire(timeout=_PAUSE):
                self._require_open()
                check_cancelled()
        try:
            self._require_open()
            with using(self._workers):
                yield
        finally:
            slots.release()

    def _require_open(self) -> None:
        if self._workers.closed:
            raise UsageError("the session is closed", hint="make the call within its `with` block")


_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _renew_places() -> None:
    """Let each session have all its places again, in a fork: calls of the parent's threads do not go on there."""
    for session in list(_sessions):
        session.renew_places()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_places)
