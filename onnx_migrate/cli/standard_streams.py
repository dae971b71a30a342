"""Standard output that loses nothing in silence: every byte is written, or the command ends with exit code 5.

Python's own streams write only a part of the bytes if they are unbuffered and a disk is full. They are None if the caller has
closed them (`>&-`). They raise UnicodeEncodeError for characters that the encoding lacks, such as cp1252 of redirected output
on Windows. Messages on standard error that cannot be written are dropped: the exit code says the same.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined, unused-ignore]

__all__ = ["OUTPUT_FAILED", "OutputFailed", "drop_output", "guard_streams", "remark_on_failure", "reporting"]

OUTPUT_FAILED = 5
"""The exit code of a command whose standard output could not be written whole."""

_ENCODING_ERRORS = "onnx_migrate.ascii"
_ASCII = {"→": "->", "…": "...", "×": "x", "·": "-", "–": "-", "≤": "<=", "≥": ">=", "±": "+/-", "²": "^2"}


class OutputFailed(Exception):
    """Standard output could not be written; the message says why. `reader_left` if its reader has closed the pipe."""

    def __init__(self, reason: str, *, reader_left: bool = False) -> None:
        super().__init__(reason)
        self.reader_left = reader_left
        self.remark = ""

    def __str__(self) -> str:
        return "; ".join(filter(None, (super().__str__(), self.remark)))


class _Output(io.FileIO):
    """File descriptor 1, whose errors are OutputFailed."""

    def __init__(self, *, was_closed: bool = False) -> None:
        super().__init__(1, "wb", closefd=False)
        self._was_closed = was_closed

    def write(self, data: Buffer) -> int:  # type: ignore[valid-type, override, unused-ignore]
        if self._was_closed:
            self._was_closed = False  # report once: Python 3.14 would report the rest again at exit
            raise OutputFailed("it is closed; redirect it to a file, or to /dev/null with --quiet")
        try:
            while (count := super().write(data)) is None:  # the descriptor does not block, and is not ready
                select.select([], [self], [])
        except OSError as error:
            reader_left = isinstance(error, BrokenPipeError)
            raise OutputFailed(error.strerror or str(error), reader_left=reader_left) from error
        return count


class _Messages(io.FileIO):
    """File descriptor 2. It drops bytes that it cannot write, so that its errors change no exit code."""

    def __init__(self) -> None:
        super().__init__(2, "wb", closefd=False)

    def write(self, data: Buffer) -> int:  # type: ignore[valid-type, override, unused-ignore]
        length = memoryview(data).nbytes
        try:
            return super().write(data) or length
        except OSError:
            return length


@contextmanager
def remark_on_failure(remark: str) -> Iterator[None]:
    """Add a remark to an OutputFailed that leaves the block."""
    try:
        yield
    except OutputFailed as error:
        error.remark = remark
        raise


@contextmanager
def reporting(kept: str) -> Iterator[None]:
    """Turn whatever keeps a report from being made and printed into OutputFailed, with what is `kept` as its remark.

    The result is in its place by then, so no other exit code is true. This includes a lack of memory, and a module that cannot
    be loaded.
    """
    with remark_on_failure(kept):
        try:
            yield
        except OutputFailed:
            raise
        except Exception as error:
            raise OutputFailed(": ".join(filter(None, (type(error).__name__, str(error))))) from error


def guard_streams() -> None:
    """Replace sys.stdout by a stream that raises OutputFailed, sys.stderr by one that raises nothing; both take any character.

    It opens closed descriptors 0 to 2 on the null device. Otherwise the next file gets such a number, and native code prints
    into this file.
    """
    codecs.register_error(_ENCODING_ERRORS, _to_ascii)
    for descriptor, flags in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        if not _is_open(descriptor):
            os.open(os.devnull, flags)  # gets the lowest number that is free, which is this one
    if sys.stdout is sys.__stdout__:
        sys.stdout = _checked(sys.__stdout__)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    elif sys.stderr is sys.__stderr__:
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Messages()),
            encoding=getattr(sys.stderr, "encoding", None),
            errors=_ENCODING_ERRORS,
            line_buffering=True,
        )
    elif isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors=_ENCODING_ERRORS)


def drop_output() -> None:
    """Send what is still in the buffer of sys.stdout to the null device, so that Python does not report it at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _checked(old: Any) -> io.TextIOWrapper:
    """Return a stream on descriptor 1 in place of Python's own, which is None where the descriptor was closed."""
    if old is not None:
        old.flush()
    raw = _Output(was_closed=old is None)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=old.encoding if old is not None else "utf-8",
        errors=_ENCODING_ERRORS,
        line_buffering=raw.isatty(),
    )


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Write characters that an encoding lacks as ASCII, those without a likeness as escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    text = "".join(_ASCII.get(each) or each.encode("ascii", "backslashreplace").decode() for each in lacking)
    return text, error.end
