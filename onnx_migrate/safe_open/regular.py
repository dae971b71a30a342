"""Opens only regular files and pipes that are open already: a pipe without a writer would block, and a device has no end."""

from __future__ import annotations

import errno
import os
import re
import stat

__all__ = ["NotRegularError", "open_regular", "own_pipe", "read_at_most"]

_DESCRIPTOR = re.compile(r"/dev/fd/(\d{1,9})|/proc/self/fd/(\d{1,9})|/dev/(stdin)")


def own_pipe(path: str | os.PathLike[str]) -> int | None:
    """Return the descriptor of a pipe or socket that this process has open and `path` names, None for any other path.

    Reading such a pipe ends when its writer ends. Opening a named pipe may block for ever, since it may have no writer.
    """
    descriptor = _DESCRIPTOR.fullmatch(str(path))
    if descriptor is None:
        return None
    fd = 0 if descriptor[3] else int(descriptor[1] or descriptor[2])
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return None
    return fd if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_NONBLOCK", 0)


class NotRegularError(OSError):
    """The path is not a file, but a pipe, a device, a socket or a folder."""

    def __init__(self, path: str | os.PathLike[str], mode: int) -> None:
        kind = next((name for test, name in _KINDS if test(mode)), "not a regular file")
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        super().__init__(number, f"it is {kind}", os.fspath(path))


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular(path: str | os.PathLike[str], *, dir_fd: int | None = None, follow: bool = True) -> int:
    """Open a regular file for reading and return its descriptor; anything else raises an error at once.

    `dir_fd` is the folder of a relative path. Without `follow`, a symbolic link is not opened. Raises OSError, also as its
    subclass NotRegularError.
    """
    before = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
    if not (stat.S_ISREG(before.st_mode) or stat.S_ISLNK(before.st_mode)):
        raise NotRegularError(path, before.st_mode)  # opening a device may already do something
    flags = _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(path, flags) if dir_fd is None else os.open(path, flags, dir_fd=dir_fd)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise NotRegularError(path, mode)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_at_most(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a regular file, or of a pipe that is open already, of up to `limit` bytes.

    Raises OSError, EFBIG for a larger file.
    """
    pipe = own_pipe(path)
    with open(open_regular(path) if pipe is None else os.dup(pipe), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(limit + 1) if size <= limit else b""
    if size > limit or len(data) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit:,} bytes", os.fspath(path))
    return data
