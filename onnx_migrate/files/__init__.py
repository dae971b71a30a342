"""Reads and writes models: the structure passes through memory, the weights are copied from file to file."""

from __future__ import annotations

from onnx_migrate.files.destination import check_not_source, check_target
from onnx_migrate.files.equality import equal
from onnx_migrate.files.load import load
from onnx_migrate.files.protos import inline
from onnx_migrate.files.reading import Source
from onnx_migrate.files.remote.download import ensure_local
from onnx_migrate.files.save import Beside, save, write

__all__ = [
    "Beside",
    "Source",
    "check_not_source",
    "check_target",
    "ensure_local",
    "equal",
    "inline",
    "load",
    "save",
    "write",
]
