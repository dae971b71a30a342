"""Opens files by untrusted names, so that they neither block, nor lead out of a folder, nor fill the memory."""

from __future__ import annotations

from onnx_migrate.safe_open.beneath import Folder, OutsideError, open_beneath
from onnx_migrate.safe_open.regular import NotRegularError, open_regular, own_pipe, read_at_most

__all__ = [
    "Folder",
    "NotRegularError",
    "OutsideError",
    "open_beneath",
    "open_regular",
    "own_pipe",
    "read_at_most",
]
