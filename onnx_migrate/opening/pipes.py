"""Paths of pipes that are open already: /dev/stdin, and what a shell writes for <(COMMAND)."""

from __future__ import annotations

import os
import re
import stat

__all__ = ["own_pipe"]

_DESCRIPTOR = re.compile(r"/dev/fd/(\d{1,9})|/proc/self/fd/(\d{1,9})|/dev/(stdin)")


def own_pipe(path: str | os.PathLike[str]) -> int | None:
    """Return the descriptor of a pipe or socket that this process has open and `path` names, None for any other path.

    Reading it ends when its writer ends, unlike opening a named pipe, to which nobody may ever write.
    """
    found = _DESCRIPTOR.fullmatch(str(path))
    if found is None:
        return None
    fd = 0 if found[3] else int(found[1] or found[2])
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return None
    return fd if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None
