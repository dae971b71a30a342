"""Lasting threads that start child processes: Linux ends a child with the thread that started it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from onnx_migrate.process.signals import start_blocked

__all__ = ["in_lasting_thread"]

Value = TypeVar("Value")


class _Starter:
    """A thread that runs one function after another."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[tuple[Any, BaseException | None]]]]
        self._tasks = SimpleQueue()
        # A ThreadPoolExecutor would refuse work after the end of the main thread, although other threads go on.
        start_blocked(threading.Thread(target=self._serve, name="onnx-migrate-starter", daemon=True))

    def make(self, make: Callable[[], Value]) -> Value:
        """Run the function in the thread. Return its result, or raise its error."""
        results: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._tasks.put((make, results))
        value, error = results.get()
        if error is not None:
            raise error
        return cast("Value", value)

    def _serve(self) -> None:
        while True:
            make, results = self._tasks.get()
            try:
                results.put((make(), None))
            except BaseException as error:
                results.put((None, error))
            del make, results  # only the caller may hold a reference to the result


_idle: list[_Starter] = []
"""Idle threads. A caller takes one away, or starts another, so that no caller waits for a slow start of another's."""


def in_lasting_thread(make: Callable[[], Value]) -> Value:
    """Run a function in a thread that lasts as long as this process: in this one, if it is the main thread.

    Returns the function's result. Raises its errors, and RuntimeError if no thread can be started.
    """
    if threading.current_thread() is threading.main_thread():
        return make()
    try:
        starter = _idle.pop()
    except IndexError:
        starter = _Starter()
    try:
        return starter.make(make)
    finally:
        _idle.append(starter)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
