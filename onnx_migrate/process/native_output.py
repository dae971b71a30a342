"""What native code writes to stderr."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator

__all__ = ["captured_output"]


@contextlib.contextmanager
def captured_output() -> Iterator[Callable[[], str]]:
    """Collect what native code writes to stderr within the block; the value is a function that returns it.

    Works on the file descriptor, so it takes the stderr of the whole process: use it in child processes.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def text() -> str:
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")

        try:
            yield text
        finally:
            os.dup2(kept, 2)
            os.close(kept)
