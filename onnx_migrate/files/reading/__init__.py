"""Reads the structure of one model from any kind of source, from a file, or from bytes."""

from __future__ import annotations

from onnx_migrate.files.reading.from_file import from_file, from_path
from onnx_migrate.files.reading.parse import parse_bytes, require_graph, require_text
from onnx_migrate.files.reading.sources import Content, GivenModel, IrModel, Source, content_of

__all__ = [
    "Content",
    "GivenModel",
    "IrModel",
    "Source",
    "content_of",
    "from_file",
    "from_path",
    "parse_bytes",
    "require_graph",
    "require_text",
]
