"""Moves bytes between this process and a child: by a socket, or on Windows by two pipes, as no child inherits a socket there."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
from abc import ABC, abstractmethod
from io import FileIO
from typing import cast

from onnx_migrate.process.waiting import Waiting

__all__ = ["LENGTH", "Channel", "PipeChannel", "SocketChannel", "above_standard_streams"]

LENGTH = struct.Struct("<Q")
"""The number of bytes of a message, which precedes them."""

_CHUNK = 1 << 20
"""Maximum number of bytes that one system call moves."""

_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""Flag: writing to a child that has ended raises an error, not SIGPIPE, which may end the host process."""


class Channel(ABC):
    """The connection of this process to a child, for writing and reading.

    All methods raise OSError, and the exceptions of `Waiting`.
    """

    def __init__(self) -> None:
        self._rest = b""

    @abstractmethod
    def send(self, data: bytes, waiting: Waiting) -> None:
        """Write all of the data."""

    @abstractmethod
    def _receive(self, waiting: Waiting) -> bytes:
        """Return some bytes, none if the child has closed its end."""

    @abstractmethod
    def close(self) -> None:
        """Close this end."""

    def message(self, waiting: Waiting) -> bytes:
        """Return the next message, after its length. Raises EOFError if the child has closed its end."""
        size = LENGTH.unpack(self._take(LENGTH.size, waiting))[0]
        return self._take(size, waiting)

    def line(self, waiting: Waiting) -> bytes:
        """Return the next line, with its line end unless the child closed its end of the channel before."""
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            parts.append(self._receive(waiting))
            if not parts[-1]:
                break
        line, end, self._rest = b"".join(parts).partition(b"\n")
        return line + end

    def _take(self, size: int, waiting: Waiting) -> bytes:
        # The last receipt may have brought the start of this message.
        parts, length = [self._rest], len(self._rest)
        while length < size:
            part = self._receive(waiting)
            if not part:
                raise EOFError
            parts.append(part)
            length += len(part)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]


class SocketChannel(Channel):
    """One socket for both directions. `theirs` is the child's end; close it here once the child has it."""

    def __init__(self) -> None:
        super().__init__()
        self._socket, self.theirs = map(above_standard_streams, socket.socketpair())

    def send(self, data: bytes, waiting: Waiting) -> None:
        """Write all of the data."""
        rest = memoryview(data)
        while rest:
            waiting.ready(self._socket, write=True)
            with contextlib.suppress(BlockingIOError):  # there is less room than poll(2) said: wait again
                rest = rest[self._socket.send(rest[:_CHUNK], _NO_SIGNAL | socket.MSG_DONTWAIT) :]

    def _receive(self, waiting: Waiting) -> bytes:
        waiting.ready(self._socket)
        return self._socket.recv(_CHUNK)

    def close(self) -> None:
        """Close both ends."""
        self._socket.close()
        self.theirs.close()


def above_standard_streams(end: socket.socket) -> socket.socket:
    """Return the socket, with a new number if its number is that of a standard stream that this process has closed."""
    if sys.platform == "win32" or end.fileno() > 2:
        return end
    import fcntl

    moved = socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, 3))
    end.close()
    return moved


class PipeChannel(Channel):
    """The pipes of a process on Windows. They block; `Waiting.killing` ends them in time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__()
        self._in, self._out = cast("FileIO", process.stdin), cast("FileIO", process.stdout)

    def send(self, data: bytes, waiting: Waiting) -> None:
        """Write all of the data."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._in.write(rest[:_CHUNK]) or 0 :]

    def _receive(self, waiting: Waiting) -> bytes:
        return self._out.read(_CHUNK) or b""

    def close(self) -> None:
        """Close both pipes."""
        self._in.close()
        self._out.close()
