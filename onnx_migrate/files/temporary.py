"""A temporary folder that exists as long as something refers to it."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

__all__ = ["TemporaryFolder"]


class TemporaryFolder:
    """A new folder, removed with the last reference to this object, or at the end of the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="onnx-migrate-"))
        self._remover = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
