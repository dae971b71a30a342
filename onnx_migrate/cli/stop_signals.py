"""SIGINT and SIGTERM end the command: at once before and after its work, else by an exception, raised again where it is lost.

Python runs a signal's handler between two instructions of the running code. In a destructor, or in a callback of the
garbage collector, Python prints and drops the exception of a handler. A library may catch it. A second signal may come
during the handling of the first. The command would continue, and end as if no signal had come.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from sys import UnraisableHookArgs
    from typing import NoReturn

__all__ = ["check_stopped", "code_of_stop", "end_on_signals", "ignore_interrupts", "stop_on_signals"]

PROGRAM = "onnx-migrate"

_PAUSE = 0.2
"""Seconds after a signal in which another one raises nothing, because the exception of the first is still rising."""

_AGAIN = 0.05
"""Seconds after which an exception that was lost is raised again."""

_received: list[int] = []
"""The signals that have asked for an end, in their order."""

_raised = -_PAUSE
"""When a handler raised last."""


def end_on_signals() -> None:
    """Let SIGINT and SIGTERM end the process after a line on stderr, while there is nothing to clean up.

    SIGINT stays ignored where the process was started so, as a shell does for a background job. No exception is raised again
    from here on: a SIGALRM that comes when Python has put the handlers back would kill the process.
    """
    _handle(_end)
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, 0)


def stop_on_signals() -> None:
    """Let SIGINT raise KeyboardInterrupt, and SIGTERM SystemExit after a line on stderr, so that the work ends cleanly.

    SIGINT stays ignored as by `end_on_signals`.
    """
    global _raised
    _raised = -_PAUSE
    _received.clear()
    _handle(_stop)
    sys.unraisablehook = _lost


def ignore_interrupts() -> None:
    """Let SIGINT do nothing any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _handle(handler: Callable[[int, object], object]) -> None:
    signal.signal(signal.SIGTERM, handler)
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end, _stop):
        signal.signal(signal.SIGINT, handler)


def check_stopped() -> None:
    """Raise the exception of a signal that has come, where the first one was lost. Called between stages."""
    if _received:
        _raise(_received[0])


def code_of_stop() -> int:
    """Return the exit code of a command that a signal should have ended, 0 if none came."""
    return 128 + _received[0] if _received else 0


def _end(number: int, frame: object) -> None:
    with suppress(OSError):
        os.write(2, f"{PROGRAM}: {'interrupted' if number == signal.SIGINT else 'terminated'}\n".encode())
    os._exit(128 + number)


def _stop(number: int, frame: object) -> None:
    global _raised
    if number == signal.SIGTERM and number not in _received:
        with suppress(OSError):
            os.write(2, f"{PROGRAM}: terminated\n".encode())
    _received.append(number)
    if time.monotonic() - _raised >= _PAUSE:
        _raised = time.monotonic()
        _raise(number)


def _raise(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _lost(dropped: UnraisableHookArgs) -> None:
    """Called by Python for an exception that it drops: have ours raised again a moment later."""
    if not (_received and issubclass(dropped.exc_type, (KeyboardInterrupt, SystemExit))):
        sys.__unraisablehook__(dropped)
    elif sys.platform != "win32":
        import threading

        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGALRM, lambda number, frame: check_stopped())
            signal.setitimer(signal.ITIMER_REAL, _AGAIN)
