"""SIGINT and SIGTERM end the command by an exception, which is raised again where it is lost.

Python runs a signal's handler between two instructions of whatever runs then. In a destructor, or in a callback of the
garbage collector, the exception of a handler is printed and dropped; a library may catch it; and a second signal may come while
the first is dealt with. The command would go on, and end as if nothing had been asked of it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

__all__ = ["STOPS", "check_stopped", "code_of_stop", "stop_on_signals"]

STOPS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)
if sys.platform != "win32":
    STOPS = (*STOPS, signal.SIGALRM)
"""The signals whose handlers raise: those that ask for an end, and the one by which an exception is raised again."""

_PAUSE = 0.2
"""Seconds after a signal in which another one raises nothing: the exception of the first is on its way."""

_AGAIN = 0.05
"""Seconds after which an exception that was lost is raised again."""

_received: list[int] = []
"""The signals that have asked for an end, in their order."""

_raised = -_PAUSE
"""When a handler raised last."""

_program = ""


def stop_on_signals(program: str) -> None:
    """Let SIGINT raise KeyboardInterrupt, and SIGTERM SystemExit after a line on stderr that begins with `program`.

    SIGINT stays ignored where the process was started so, as a shell does for a background job.
    """
    global _program, _raised
    _program, _raised = program, -_PAUSE
    _received.clear()
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    sys.unraisablehook = _lost


def check_stopped() -> None:
    """Raise the exception of a signal that has come, where the first one was lost. Called between stages."""
    if _received:
        _raise(_received[0])


def code_of_stop() -> int:
    """Return the exit code of a command that a signal should have ended, 0 if none came."""
    return 128 + _received[0] if _received else 0


def _stop(number: int, frame: object) -> None:
    global _raised
    if number == signal.SIGTERM and number not in _received:
        os.write(2, f"{_program}: terminated\n".encode())
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
    elif sys.platform != "win32" and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, lambda number, frame: check_stopped())
        signal.setitimer(signal.ITIMER_REAL, _AGAIN)
