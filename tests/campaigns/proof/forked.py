"""Calls a function in a forked child with a time limit: a kernel that crashes or hangs ends one case, not the campaign."""

from __future__ import annotations

import importlib
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

__all__ = ["Died", "call", "import_what_it_imports"]


class Died(Exception):
    """The child ended without a result: by a signal, or since its time was over."""


def call(function: Callable[..., Any], *arguments: Any, seconds: float = 60.0) -> Any:
    """Return the result of a call in a forked child. Raises Died; an exception of the function is raised again."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        # The child ends by itself if its parent was killed and cannot end it.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds) + 5)
        _answer(writer, function, arguments)
    os.close(writer)
    try:
        data = _read(reader, time.monotonic() + seconds)
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if not data:
        raise Died(f"ended with status {status}")
    raised, value = pickle.loads(data)
    if raised:
        raise value
    return value


def import_what_it_imports(function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function in a child and import here the modules that it imported, so that later children have them."""
    for name in call(_modules_after, function, arguments):
        if name not in sys.modules:
            # Some modules exist only within the import of another one.
            with suppress(Exception):
                importlib.import_module(name)


def _modules_after(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[str]:
    function(*arguments)
    return list(sys.modules)


def _answer(writer: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        answer = (False, function(*arguments))
        data = pickle.dumps(answer)
    except BaseException as error:
        data = pickle.dumps((True, RuntimeError(f"{type(error).__name__}: {error}")))
    with os.fdopen(writer, "wb") as stream:
        stream.write(data)
    os._exit(0)


def _read(reader: int, deadline: float) -> bytes:
    chunks = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise Died("not done in time")
        chunk = os.read(reader, 1 << 20)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
