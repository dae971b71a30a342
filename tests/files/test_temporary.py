"""A temporary folder is removed, with its content, when nothing refers to it."""

from __future__ import annotations

import gc

from onnx_migrate.files.temporary import TemporaryFolder


def test_it_exists_as_long_as_it_is_referred_to() -> None:
    folder = TemporaryFolder()
    keeper, path = [folder], folder.path
    (path / "sub").mkdir()
    (path / "sub" / "file").write_bytes(b"x")
    del folder
    gc.collect()

    assert (path / "sub" / "file").read_bytes() == b"x"
    keeper.clear()
    gc.collect()
    assert not path.exists()


def test_two_folders_are_not_one() -> None:
    first, second = TemporaryFolder(), TemporaryFolder()

    assert first.path != second.path
