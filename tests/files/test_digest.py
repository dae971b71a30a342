"""The digest of a file is that of all its bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from onnx_migrate.files.digest import file_digest


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) + 3])
def test_it_is_blake2b_of_the_whole_file(size: int, tmp_path: Path) -> None:
    content = bytes(range(251)) * (size // 251 + 1)
    (tmp_path / "a").write_bytes(content[:size])

    assert file_digest(tmp_path / "a") == hashlib.blake2b(content[:size], digest_size=16).hexdigest()
