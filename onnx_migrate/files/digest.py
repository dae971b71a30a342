"""A digest of a file's content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from onnx_migrate.opening import open_regular

__all__ = ["file_digest"]


def file_digest(path: Path) -> str:
    """Return the BLAKE2b of a file's content, 16 bytes long, in hexadecimal."""
    found = hashlib.blake2b(digest_size=16)
    with open(open_regular(path), "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()
