"""The path that links lead to, also while somebody replaces them."""

from __future__ import annotations

import errno
import os

__all__ = ["real_path"]

_TRIES = 20


def real_path(path: str | os.PathLike[str]) -> str:
    """Return `os.path.realpath`, tried again where a link was replaced by a file between two looks at it.

    Python's own raises OSError (EINVAL) for that (`_joinrealpath` in posixpath.py).
    """
    for _ in range(_TRIES):
        try:
            return os.path.realpath(path)
        except OSError as error:  # noqa: PERF203
            if error.errno != errno.EINVAL:
                raise
    return os.path.realpath(path)
