"""An output path is refused before anything is written, for a reason that the message names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from onnx_migrate.errors import SaveError
from onnx_migrate.files import load
from onnx_migrate.files.destination import check_file, check_not_source, check_target
from onnx_migrate.model.model import Model
from tests.files.feature_models import plain, with_external_data
from tests.files.saving import moved, names, refusal
from tests.support.skips import Elsewhere, skip_if


def test_a_path_that_cannot_be_written_is_refused(source: Path, out: Path) -> None:
    loaded = load(source)
    refusal("no-such-folder", loaded, out.parent / "none" / "b.onnx")
    refusal("no-such-folder", loaded, source / "b.onnx")
    refusal("is-directory", loaded, out.parent)
    refusal("is-directory", loaded, f"{out.parent / 'none'}/")
    os.mkfifo(out.parent / "pipe")
    refusal("cannot-write", loaded, out.parent / "pipe")
    refusal("cannot-write", loaded, out.parent / ("x" * 300))
    refusal("cannot-write", loaded, f"{out}\0")
    assert names(out.parent) == {"pipe"}


@skip_if(os.geteuid() != 0, "needs root to become somebody else", Elsewhere.ROOT)
def test_missing_permissions_are_named(source: Path, out: Path) -> None:
    for folder in (source.parent, *source.parents[:-2]):
        folder.chmod(0o755)
    loaded = load(source)
    out.write_bytes(b"old")
    os.seteuid(65534)
    try:
        for target in (out, out.with_name("c.onnx")):
            assert f"no permission to write to the folder {out.parent}" in str(
                refusal("cannot-write", loaded, target)
            )
        os.seteuid(0)
        out.parent.chmod(0o777)
        os.seteuid(65534)
        assert f"{out}: no permission to write to this file" in str(refusal("cannot-write", loaded, out))
    finally:
        os.seteuid(0)
    assert out.read_bytes() == b"old"
    assert names(out.parent) == {"b.onnx"}


LEADS: dict[str, Callable[[Path], Path]] = {
    "itself": lambda file: file,
    "another spelling": lambda file: file.parent / ".." / file.parent.name / file.name,
    "a link": lambda file: linked(os.symlink, file),
    "a hard link": lambda file: linked(os.link, file),
}


def linked(how: Callable[[Path, Path], None], file: Path) -> Path:
    how(file, file.with_name("other"))
    return file.with_name("other")


@pytest.mark.parametrize("read", [load, moved])
@pytest.mark.parametrize("lead", LEADS.values(), ids=LEADS)
def test_no_file_of_the_source_is_overwritten(
    lead: Callable[[Path], Path], read: Callable[[Path], Model], source: Path
) -> None:
    with_external_data(plain(), source, "w.bin")
    before = source.read_bytes(), source.with_name("w.bin").read_bytes()

    for name, code, external in (
        ("w.bin", "would-overwrite", False),
        ("w.bin", "would-overwrite", True),
        ("a.onnx", "in-place", False),
    ):
        target = lead(source.with_name(name))
        refusal(code, read(source), target, external=external)
        if external is False and code == "would-overwrite":
            with pytest.raises(SaveError) as caught:
                check_not_source([target], read(source).origin)
            assert caught.value.code == code
        source.with_name("other").unlink(missing_ok=True)

    refusal("would-overwrite", read(source), lead(source.with_name("w.bin")), in_place=True)
    assert (source.read_bytes(), source.with_name("w.bin").read_bytes()) == before


def test_the_check_before_the_work_is_that_of_the_save(source: Path, out: Path) -> None:
    for code, path in (
        ("no-such-folder", out.parent / "none" / "b.onnx"),
        ("is-directory", out.parent),
        ("in-place", source),
    ):
        with pytest.raises(SaveError) as caught:
            check_target(path, source=source)
        assert str(caught.value) == str(refusal(code, load(source), path))
        assert caught.value.hint

    check_target(source, source=source, in_place=True)
    check_target(out, source=source)
    assert (check_file(out), check_file(source)) == (False, True)
    assert names(out.parent) == set()
