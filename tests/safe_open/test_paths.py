"""Looks up what is in a folder, and where links lead to.

Functions of os.path, pathlib and pkgutil take a folder that cannot be read for an empty one, and a file that cannot be looked up
for one that is not there. These raise OSError.
"""

from __future__ import annotations

import errno
import importlib
import os
import pkgutil
from pathlib import Path

import pytest

from onnx_migrate.safe_open.paths import exists, listed, real_path, submodules


@pytest.mark.parametrize(
    "name", ["onnx_migrate.passes", "onnx_migrate.passes.steps", "onnx_migrate.verify.evaluators"]
)
def test_modules_are_those_that_pkgutil_finds(name: str) -> None:
    package = importlib.import_module(name)
    assert submodules(package) == sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def test_files_are_those_that_match(tmp_path: Path) -> None:
    for name in ("b.onnx", "a.onnx", ".c.onnx", "a.onnx.data", "[x].onnx"):
        (tmp_path / name).touch()
    assert [path.name for path in listed(tmp_path, "*.onnx")] == [".c.onnx", "[x].onnx", "a.onnx", "b.onnx"]


def test_a_folder_that_cannot_be_listed_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: str) -> list[str]:
        raise PermissionError(13, os.strerror(13), folder)

    package = importlib.import_module("onnx_migrate.passes")
    monkeypatch.setattr(os, "listdir", refuse)
    for call in (lambda: listed(tmp_path, "*"), lambda: submodules(package)):
        with pytest.raises(PermissionError):
            call()


def test_a_file_that_cannot_be_looked_up_is_not_absent(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="circle"):
        exists(tmp_path / "circle")
    assert exists(tmp_path)
    assert not any(exists(tmp_path / name) for name in ("absent", "x" * 300, "absent/below"))


def test_a_link_that_was_replaced_in_between_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [OSError(errno.EINVAL, "Invalid argument"), OSError(errno.EINVAL, "Invalid argument"), "/there"]

    def changing(path: object) -> str:
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os.path, "realpath", changing)
    assert real_path(tmp_path) == "/there"


def test_other_errors_are_raised_and_links_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("file")
    assert real_path(tmp_path / "link") == str(tmp_path.resolve() / "file")

    def failing(path: object) -> str:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os.path, "realpath", failing)
    with pytest.raises(OSError, match="Input/output"):
        real_path(tmp_path)
