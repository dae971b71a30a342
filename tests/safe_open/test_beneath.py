"""What is opened beneath a folder is in it, whatever is swapped while it is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnx_migrate.safe_open import beneath
from onnx_migrate.safe_open.beneath import Folder, OutsideError, open_beneath
from onnx_migrate.safe_open.regular import NotRegularError
from tests.support.skips import Elsewhere, skip_if


def content(fd: int) -> bytes:
    try:
        return os.read(fd, 99)
    finally:
        os.close(fd)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with sub/w, and outside of it a file `secret` and a folder `else` with another w."""
    home = tmp_path / "home"
    for folder in (home / "sub", tmp_path / "else"):
        folder.mkdir(parents=True)
        (folder / "w").write_bytes(b"inside" if folder.name == "sub" else b"canary")
    (tmp_path / "secret").write_bytes(b"canary")
    return home


def test_links_that_stay_inside_are_followed_and_others_are_not(home: Path) -> None:
    (home / "relative").symlink_to("sub/w")
    (home / "absolute").symlink_to(home / "sub" / "w")
    (home / "folder").symlink_to("sub")
    (home / "roundabout").symlink_to("../home/sub/w")
    os.link(home / "sub" / "w", home / "hard")
    (home / "out").symlink_to("../secret")
    (home / "up").symlink_to("..")
    at = [Folder.at(home)]

    for inside in (
        "sub/w",
        "./sub//w",
        "sub/../sub/w",
        "relative",
        "absolute",
        "folder/w",
        "roundabout",
        "hard",
    ):
        assert content(open_beneath(at, inside)) == b"inside", inside
    for outside in ("../secret", str(home / "sub/w"), "out", "up/secret", "sub/../../secret", "/etc/passwd"):
        with pytest.raises(OutsideError):
            open_beneath(at, outside)


def test_a_second_folder_is_where_links_may_lead_too(home: Path, tmp_path: Path) -> None:
    (home / "w").symlink_to("../else/w")

    assert content(open_beneath([Folder.at(home), Folder.at(tmp_path / "else")], "w")) == b"canary"


def test_what_is_no_file_is_refused(home: Path) -> None:
    os.mkfifo(home / "pipe")

    for name in ("pipe", "sub", "."):
        with pytest.raises(NotRegularError):
            open_beneath([Folder.at(home)], name)
    with pytest.raises(FileNotFoundError):
        open_beneath([Folder.at(home)], "none")
    for name in ("sub/w/", "sub/w/."):
        with pytest.raises(NotADirectoryError):
            open_beneath([Folder.at(home)], name)


@skip_if(not beneath._BY_DESCRIPTOR, "the system opens by path only", Elsewhere.LINUX)
@pytest.mark.parametrize("swapped", ["file", "folder", "root"])
def test_a_swap_after_the_links_were_resolved_leads_nowhere(
    swapped: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = Folder.at(home)
    resolve = os.path.realpath

    def swap(path: str) -> str:
        """Resolve, and let somebody put a link in the place of what was resolved."""
        found = resolve(path)
        monkeypatch.undo()
        place, target = {
            "file": (home / "sub" / "w", tmp_path / "secret"),
            "folder": (home / "sub", tmp_path / "else"),
            "root": (home, tmp_path / "other home"),
        }[swapped]
        (tmp_path / "other home" / "sub").mkdir(parents=True)
        (tmp_path / "other home" / "sub" / "w").write_bytes(b"canary")
        place.rename(tmp_path / "old")
        place.symlink_to(target)
        return found

    monkeypatch.setattr(os.path, "realpath", swap)

    with pytest.raises(OSError, match="replaced"):
        open_beneath([at], "sub/w")


@pytest.mark.parametrize("name", ["w", "link"])
def test_without_descriptors_of_folders_a_swap_is_found_after_the_opening(
    name: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beneath, "_BY_DESCRIPTOR", False)
    (home / "w").write_bytes(b"inside")
    (home / "link").symlink_to("w")
    assert content(open_beneath([Folder.at(home)], name)) == b"inside"

    def open_swapped(path: str) -> int:
        os.unlink(home / "w")
        (home / "w").symlink_to(tmp_path / "secret")
        return os.open(path, os.O_RDONLY)

    monkeypatch.setattr(beneath, "open_regular", open_swapped)
    with pytest.raises(OSError, match="replaced"):
        open_beneath([Folder.at(home)], name)
