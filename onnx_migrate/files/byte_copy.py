"""Writes pieces to a file; the kernel copies payloads from file to file, not through the memory of this process.

Sources are copy_file_range(2), sendfile(2) and posix_fadvise(2). copy_file_range(2) shares blocks if the file system can.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError
from onnx_migrate.files.wire.payload_references import Piece
from onnx_migrate.model.payloads import BufferPayload, FilePayload, FileStamp

__all__ = ["write_pieces"]

CHUNK = 1 << 20
"""Bytes to collect before a write. Also the bytes of one copy, if the platform cannot copy within the kernel."""

WRITEBACK_STEP = 1 << 26
"""After so many bytes, the kernel starts writing to the disk, so that the final fsync takes little time."""

_UNSUPPORTED = frozenset(
    {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF}
)


def write_pieces(fd: int, pieces: Iterable[Piece]) -> None:
    """Append `pieces` to the open file `fd`. Raises OSError for `fd`, LoadError for the file of a payload.

    The LoadError means that somebody changed this file between the load and the end of the copy.
    """
    waiting = bytearray()
    opened: dict[tuple[Path, FileStamp | None], tuple[FilePayload, int]] = {}
    begun = os.lseek(fd, 0, os.SEEK_CUR)
    # Each file is opened once, so that all its payloads come from the same file.
    with ExitStack() as stack:
        for piece in pieces:
            if isinstance(piece, bytes):
                waiting += piece
                if len(waiting) < CHUNK:
                    continue
            _write(fd, waiting)
            waiting.clear()
            if isinstance(piece, FilePayload):
                key = piece.path, piece.stamp
                if key not in opened:
                    opened[key] = piece, stack.enter_context(piece.open()).fileno()
                end = piece.offset + piece.length
                for start in range(piece.offset, end, WRITEBACK_STEP):
                    _copy(opened[key][1], fd, start, min(start + WRITEBACK_STEP, end), piece.path)
                    begun = _start_writeback(fd, begun)
            elif isinstance(piece, BufferPayload):
                _write(fd, piece.buffer)
            elif not isinstance(piece, bytes):
                _write(fd, piece.read())
        _write(fd, waiting)
        # A file that changed during the copy makes the result useless.
        for piece, source in opened.values():
            piece.require_unchanged(source)


def _start_writeback(fd: int, begun: int) -> int:
    """Ask the kernel to write out the bytes since offset `begun`, if there are enough. Return the offset of the next step."""
    at = os.lseek(fd, 0, os.SEEK_CUR)
    if at - begun < WRITEBACK_STEP:
        return begun
    if hasattr(os, "posix_fadvise"):
        # On POSIX_FADV_DONTNEED, Linux starts to write dirty pages of the range to the disk.
        os.posix_fadvise(fd, begun, at - begun, os.POSIX_FADV_DONTNEED)
    return at


def _write(fd: int, data: bytes | bytearray | memoryview) -> None:
    """Write all of `data`, as write(2) may write less than it is given."""
    with memoryview(data) as view:
        written_bytes = 0
        while written_bytes < len(view):
            written_bytes += os.write(fd, view[written_bytes : written_bytes + WRITEBACK_STEP])


def _copy(source: int, target: int, offset: int, end: int, path: Path) -> None:
    """Copy bytes `offset` to `end` between open files, by the first of three system calls that these files support."""
    for copy in (_copy_range, _send, _read_write):
        try:
            while offset < end:
                count = copy(source, target, offset, end - offset)
                if not count:
                    break  # the end of the file, or a file that this call cannot read
                offset += count
        except OSError as error:
            if error.errno not in _UNSUPPORTED or copy is _read_write:
                raise
        if offset == end:
            return
    raise LoadError(
        f"{path} ends at byte {offset}, but the model needs it up to byte {end}: it was cut while it was read",
        code="missing-data",
        hint=Advice("restore the file and try again"),
    )


def _copy_range(source: int, target: int, offset: int, count: int) -> int:
    """Copy up to `count` bytes by copy_file_range(2); return how many, 0 where that call does not exist."""
    if not hasattr(os, "copy_file_range"):
        return 0
    return os.copy_file_range(source, target, count, offset_src=offset)


def _send(source: int, target: int, offset: int, count: int) -> int:
    """Copy up to `count` bytes by sendfile(2); return how many, 0 where that call does not exist."""
    if not hasattr(os, "sendfile"):
        return 0
    return os.sendfile(target, source, offset, count)


def _read_write(source: int, target: int, offset: int, count: int) -> int:
    """Copy up to CHUNK of `count` bytes through memory; return how many, 0 at the end of the file."""
    os.lseek(source, offset, os.SEEK_SET)
    data = os.read(source, min(count, CHUNK))
    _write(target, data)
    return len(data)
