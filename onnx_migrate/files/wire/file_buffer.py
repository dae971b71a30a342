"""A file as the parser's buffer, read piece by piece.

If another process truncates a file that is mapped into memory, SIGBUS ends this process. A read that finds too few bytes only
raises an error.
"""

from __future__ import annotations

import os
from typing import overload

__all__ = ["FileBuffer", "FileCut"]

_WINDOW = 1 << 16
"""Bytes that are read at a time for single bytes and short slices."""


class FileCut(Exception):
    """A file has become shorter while it was read."""


class FileBuffer:
    """The first `size` bytes of an open file; the parser goes through them mostly from the first to the last."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self._size = size
        self._start = 0
        self._window = b""

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, key: int, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes: ...
    def __getitem__(self, key: int | slice, /) -> int | bytes:
        """Return a byte at an offset from the start, or a slice without a step. Raises FileCut, IndexError and OSError."""
        if isinstance(key, int):
            at = key - self._start
            # Most bytes are in the window that was read last.
            if not 0 <= at < len(self._window):
                if not 0 <= key < self._size:
                    raise IndexError(key)
                self._fill(key)
                at = 0
            return self._window[at]
        start, end, _ = key.indices(self._size)
        at = start - self._start
        if at >= 0 and end - self._start <= len(self._window):
            return self._window[at : max(end - self._start, at)]
        # A large payload would push everything else out of the window.
        if end - start > _WINDOW:
            return self._read(start, end)
        self._fill(start)
        return self._window[: max(end - start, 0)]

    def _fill(self, start: int) -> None:
        self._window = self._read(start, min(start + _WINDOW, self._size))
        self._start = start

    def _read(self, start: int, end: int) -> bytes:
        """Return a range of the file, whole."""
        content = bytearray()
        # A read may return fewer bytes than the caller requested.
        while start + len(content) < end:
            # Linux returns at most 2 GB at once.
            data = _pread(self._fd, min(end - start - len(content), 1 << 30), start + len(content))
            if not data:
                raise FileCut
            if len(data) == end - start:
                return data
            content += data
        return bytes(content)


def _pread(fd: int, count: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, count, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, count)
