"""Paths of links that are replaced while they are followed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from onnx_migrate.opening.real_path import real_path


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
