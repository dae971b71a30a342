"""Writing pieces to a file; payloads that lie in files go there without passing through this process."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from onnx_migrate.errors import LoadError
from onnx_migrate.files.wire.rebuild import Piece
from onnx_migrate.model.weights import BufferPayload, FilePayload

__all__ = ["write"]

CHUNK = 1 << 20
"""Bytes moved at once where the platform has no call that copies within the kernel."""

STRETCH = 1 << 26
"""Bytes after which the disk is set to work, so that the final fsync has little left to wait for."""

_TRY_ANOTHER = frozenset(
    {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF}
)


def write(fd: int, pieces: Iterable[Piece]) -> None:
    """Append `pieces` to the open file `fd`. Raises OSError of the target, LoadError of a payload's file."""
    waiting = bytearray()
    opened: dict[Path, int] = {}
    begun = os.lseek(fd, 0, os.SEEK_CUR)
    with ExitStack() as stack:
        for piece in pieces:
            if isinstance(piece, bytes):
                waiting += piece
                if len(waiting) < CHUNK:
                    continue
            _write(fd, waiting)
            waiting.clear()
            if isinstance(piece, FilePayload):
                if piece.path not in opened:
                    opened[piece.path] = stack.enter_context(piece.open()).fileno()
                end = piece.offset + piece.length
                for start in range(piece.offset, end, STRETCH):
                    _copy(opened[piece.path], fd, start, min(start + STRETCH, end), piece.path)
                    begun = _set_to_work(fd, begun)
            elif isinstance(piece, BufferPayload):
                _write(fd, piece.buffer)
            elif not isinstance(piece, bytes):
                _write(fd, piece.read())
        _write(fd, waiting)


def _set_to_work(fd: int, begun: int) -> int:
    """Let the disk begin on what was written since `begun`, if a stretch; return where the next begins."""
    at = os.lseek(fd, 0, os.SEEK_CUR)
    if at - begun < STRETCH:
        return begun
    if hasattr(os, "posix_fadvise"):
        # Linux begins to write out dirty pages that are called unneeded, without dropping them.
        os.posix_fadvise(fd, begun, at - begun, os.POSIX_FADV_DONTNEED)
    return at


def _write(fd: int, data: bytes | bytearray | memoryview) -> None:
    with memoryview(data) as view:
        done = 0
        while done < len(view):
            done += os.write(fd, view[done : done + STRETCH])


def _copy(source: int, target: int, offset: int, end: int, path: Path) -> None:
    """Copy bytes between open files, by the first of three ways that the platform and its files allow."""
    for way in (_copy_range, _send, _read_write):
        try:
            while offset < end:
                count = way(source, target, offset, end - offset)
                if not count:
                    break  # the file has ended, or this way cannot see it
                offset += count
        except OSError as error:
            if error.errno not in _TRY_ANOTHER or way is _read_write:
                raise
        if offset == end:
            return
    raise LoadError(f"{path} ends at byte {offset}, before byte {end}", code="missing-data")


def _copy_range(source: int, target: int, offset: int, count: int) -> int:
    if not hasattr(os, "copy_file_range"):
        return 0
    return os.copy_file_range(source, target, count, offset_src=offset)


def _send(source: int, target: int, offset: int, count: int) -> int:
    if not hasattr(os, "sendfile"):
        return 0
    return os.sendfile(target, source, offset, count)


def _read_write(source: int, target: int, offset: int, count: int) -> int:
    os.lseek(source, offset, os.SEEK_SET)
    data = os.read(source, min(count, CHUNK))
    _write(target, data)
    return len(data)
