"""A session: migrations and comparisons that share warm child processes."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onnx_migrate import files
from onnx_migrate.comparison import compare
from onnx_migrate.errors import UsageError
from onnx_migrate.migration import Migration, migrate
from onnx_migrate.model.model import Model
from onnx_migrate.process import Workers, using
from onnx_migrate.verdicts import Verdict

__all__ = ["Session"]


class Session:
    """Child processes that are kept from one call to the next, and end with the session, which is a context manager.

    Threads may share it. `jobs` is how many calls run at a time, each with up to two children; more wait. By default there are
    as many as cores. A child that a model ends is replaced, and so is one that keeps more than 256 MB. Limits of time and memory
    hold for each call. Outside of a session `migrate` and `compare` keep their children too, until they have been idle for a
    minute or the process ends.
    """

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise UsageError(f"jobs={jobs} is no number of calls", hint="give 1 or more, or leave it out")
        most = jobs or os.cpu_count() or 1
        self._workers, self._places = Workers(most=2 * most), threading.Semaphore(most)
        weakref.finalize(self, self._workers.close)  # where nobody closes it

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the children, whatever they do: calls that run raise Cancelled, and later ones UsageError."""
        self._workers.close()

    def migrate(self, source: files.Source | Model, **options: Any) -> Migration:
        """Migrate a model as `onnx_migrate.migrate` does, with its keywords, and raise as it does."""
        with self._place():
            return migrate(source, **options)

    def compare(self, original: files.Source, other: files.Source, **options: Any) -> Verdict:
        """Compare two models as `onnx_migrate.compare` does, with its keywords, and raise as it does."""
        with self._place():
            return compare(original, other, **options)

    @contextmanager
    def _place(self) -> Iterator[None]:
        if self._workers.closed:
            raise UsageError("the session is closed", hint="make the call within its `with` block")
        with self._places, using(self._workers):
            yield
