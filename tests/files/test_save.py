from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnx_migrate.errors import SaveError
from onnx_migrate.files import atomic_file as newfile
from onnx_migrate.files import byte_copy as copying
from onnx_migrate.files import check_not_source, inline, load, save
from onnx_migrate.files import save as save_function
from onnx_migrate.model.model import Model
from tests.files.feature_models import UNKNOWN, model, plain, weight, with_external_data

save_module = sys.modules[save_function.__module__]


def other() -> onnx.ModelProto:
    """A model that differs from `plain` in structure and in weights."""
    return model([weight("w", 7), weight("v", 8, 5000)], doc_string="other")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a.onnx").write_bytes(plain().SerializeToString())
    return folder / "a.onnx"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "b.onnx"


def changed(path: Path) -> Model:
    loaded = load(path)
    loaded.proto.producer_name = "changed"
    return loaded


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def refusal(code: str, *args: object, **kwargs: object) -> SaveError:
    with pytest.raises(SaveError) as caught:
        save(*args, **kwargs)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    return caught.value


# Where to


def test_targets_that_cannot_be(source: Path, out: Path) -> None:
    loaded = load(source)
    refusal("no-such-folder", loaded, out.parent / "none" / "b.onnx")
    refusal("no-such-folder", loaded, source / "b.onnx")
    refusal("is-directory", loaded, out.parent)
    os.mkfifo(out.parent / "pipe")
    refusal("cannot-write", loaded, out.parent / "pipe")
    refusal("cannot-write", loaded, out.parent / ("x" * 300))
    refusal("cannot-write", loaded, f"{out}\0")
    assert names(out.parent) == {"pipe"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_permissions_refuse(source: Path, out: Path) -> None:
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


def test_permission_bits(source: Path, out: Path) -> None:
    old = os.umask(0o027)
    try:
        save(load(source), out)
        assert stat.S_IMODE(out.stat().st_mode) == 0o640
        out.chmod(0o604)
        save(changed(source), out, external=True)
    finally:
        os.umask(old)
    assert stat.S_IMODE(out.stat().st_mode) == 0o604


def test_a_link_is_written_through(source: Path, out: Path) -> None:
    real = source.parent / "real.onnx"
    real.write_bytes(b"old")
    out.symlink_to(real)
    save(load(source), out)
    assert out.is_symlink()
    assert real.read_bytes() == plain().SerializeToString()
    refusal("cannot-write", load(source), out, external=True)  # its data would not be found through the link
    dangling = out.with_name("c.onnx")
    dangling.symlink_to("d.onnx")
    save(load(source), dangling, external=True)
    assert names(out.parent) == {"b.onnx", "c.onnx", "d.onnx", "d.onnx.data"}
    assert inline(load(dangling)) == plain()


# In place


def test_the_source_is_replaced_only_when_asked(source: Path) -> None:
    link, hard = source.with_name("link.onnx"), source.with_name("hard.onnx")
    link.symlink_to(source)
    os.link(source, hard)
    for path in (source, link, hard, os.path.relpath(source)):
        assert "--in-place" in refusal("in-place", changed(source), path).hint
    want = plain()
    want.producer_name = "changed"
    save(changed(source), link, in_place=True)
    assert link.is_symlink()
    assert source.read_bytes() == want.SerializeToString()
    assert names(source.parent) == {"a.onnx", "link.onnx", "hard.onnx"}


def test_after_saving_in_place_the_model_knows_its_weights_are_gone(source: Path) -> None:
    loaded = changed(source)
    save(loaded, source, in_place=True)
    with pytest.raises(Exception, match="changed since"):
        inline(loaded)


def test_in_place_external_data_is_neither_read_nor_moved(source: Path) -> None:
    with_external_data(plain(), source, "w.bin")
    before = (source.parent / "w.bin").stat()
    save(changed(source), source, in_place=True)
    after = (source.parent / "w.bin").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert names(source.parent) == {"a.onnx", "w.bin"}
    want = plain()
    want.producer_name = "changed"
    assert inline(load(source)) == want


def test_in_place_from_a_single_file_to_external_data(source: Path) -> None:
    save(changed(source), source, in_place=True, external=True)
    assert names(source.parent) == {"a.onnx", "a.onnx.data"}
    want = plain()
    want.producer_name = "changed"
    assert inline(load(source)) == want


def test_in_place_through_a_hard_link_elsewhere_takes_the_data_along(source: Path, out: Path) -> None:
    with_external_data(plain(), source, "w.bin")
    os.link(source, out)
    save(load(source), out, in_place=True)
    assert out.read_bytes() == plain().SerializeToString()


# External data


def test_layout_of_external_data(source: Path, out: Path) -> None:
    proto = model([weight("a", 1, 3), weight("b", 2, 5000), weight("c", 3, 2**19), weight("d", 4, 2000)])
    source.write_bytes(proto.SerializeToString())
    save(load(source), out, external=True)
    saved = onnx.load(out, load_external_data=False).graph.initializer
    assert saved[0].raw_data == proto.graph.initializer[0].raw_data
    got = [{e.key: e.value for e in t.external_data} for t in saved[1:]]
    assert got == [
        {"location": "b.onnx.data", "offset": "0", "length": "20000"},
        {"location": "b.onnx.data", "offset": "20480", "length": "2097152"},
        {"location": "b.onnx.data", "offset": "2117632", "length": "8000"},
    ]
    assert onnx.load(out) == onnx.load(out)
    for tensor, want in zip(onnx.load(out).graph.initializer, proto.graph.initializer, strict=True):
        assert tensor.raw_data == want.raw_data
    first = out.read_bytes(), out.with_name("b.onnx.data").read_bytes()
    save(load(source), out, external=True)
    assert (out.read_bytes(), out.with_name("b.onnx.data").read_bytes()) == first
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}


def test_more_than_one_file_holds_goes_to_external_data(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = len(plain().SerializeToString())
    monkeypatch.setattr(save_module, "ONE_FILE_LIMIT", size)
    save(load(source), out)
    assert names(out.parent) == {"b.onnx"}
    monkeypatch.setattr(save_module, "ONE_FILE_LIMIT", size - 1)
    save(load(source), out)
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}
    assert inline(load(out)) == plain()
    monkeypatch.setattr(save_module, "ONE_FILE_LIMIT", 100)
    refusal("cannot-write", load(source), out)


@pytest.mark.parametrize("old_external", [False, True])
@pytest.mark.parametrize("new_external", [False, True])
def test_every_kind_replaces_every_kind(
    old_external: bool, new_external: bool, source: Path, out: Path
) -> None:
    save(load(other()), out, external=old_external)
    save(load(source), out, external=new_external)
    assert inline(load(out)) == plain()
    assert names(out.parent) == ({"b.onnx", "b.onnx.data"} if new_external else {"b.onnx"})


def test_data_of_others_is_never_replaced(source: Path, out: Path) -> None:
    data = out.with_name("b.onnx.data")
    data.write_bytes(b"precious")
    for write_old in (
        lambda: None,
        lambda: out.write_bytes(b"not a model"),
        lambda: save(load(other()), out),
    ):
        write_old()
        refusal("would-overwrite", load(source), out, external=True)
        assert data.read_bytes() == b"precious"
    save(load(source), out)
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}
    assert data.read_bytes() == b"precious"


def test_the_sources_own_data_is_never_a_target(source: Path) -> None:
    with_external_data(plain(), source, "b.onnx.data")
    data = (source.parent / "b.onnx.data").read_bytes()
    refusal("would-overwrite", load(source), source.parent / "b.onnx.data")
    refusal("would-overwrite", load(source), source.parent / "b.onnx", external=True)
    shutil.copy(source, source.parent / "b.onnx")  # two models that share their data
    refusal("would-overwrite", load(source), source.parent / "b.onnx", external=True)
    save(load(source), source.parent / "b.onnx")
    assert (source.parent / "b.onnx.data").read_bytes() == data
    assert inline(load(source)) == inline(load(source.parent / "b.onnx")) == plain()


def moved(path: Path) -> Model:
    """Return the model at a path with its weights elsewhere, as the simplifier leaves them."""
    read = load(path)
    found = load(inline(read))
    found.origin = read.origin
    return found


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
def test_no_file_of_the_source_is_a_target(
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


def test_data_that_the_source_shares_with_the_target_stays(source: Path) -> None:
    """The target's old data is removed with it, unless the source's weights lie there too."""
    with_external_data(plain(), source, "b.onnx.data")
    data, target = source.with_name("b.onnx.data"), source.with_name("b.onnx")
    before = data.read_bytes()
    shutil.copy(source, target)

    refusal("would-overwrite", moved(source), target, external=True)
    save(moved(source), target)

    assert data.read_bytes() == before
    assert inline(load(source)) == inline(load(target)) == plain()


# Atomicity

Steps = list[Callable[[], None]]


class KilledError(BaseException):
    """Ends a save at a system call, as a kill would: nothing of ours runs afterwards."""


SYSTEM_CALLS = ["link", "replace", "unlink", "fsync", "write", "copy_file_range", "open", "fchmod"]


def run_killed(call: str, count: int, action: Callable[[], None]) -> bool:
    """Run `action` in a child that is killed at its `count`th `call`; tell whether it got so far."""
    pid = os.fork()
    if pid == 0:
        original, left = getattr(os, call), [count]

        def counted(*args: object, **kwargs: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        setattr(os, call, counted)
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("nameless", [True, False], ids=["O_TMPFILE", "named"])
@pytest.mark.parametrize("old_external", [False, True])
@pytest.mark.parametrize("new_external", [False, True])
def test_killed_at_any_system_call_leaves_a_whole_model(
    old_external: bool,
    new_external: bool,
    nameless: bool,
    source: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    old, new = other().SerializeToString(), plain().SerializeToString()
    kills = 0
    for call in SYSTEM_CALLS:
        for count in range(100):
            shutil.rmtree(out.parent)
            out.parent.mkdir()
            save(load(other()), out, external=old_external)
            killed = run_killed(call, count, lambda: save(load(source), out, external=new_external))
            kills += killed
            got = inline(load(out)).SerializeToString()
            assert got in (old, new) if killed else got == new, (call, count)
            # Whatever it left, the next save finds its way and tidies.
            if killed:
                again = load(source)
                save(again, out, external=new_external)
                assert inline(load(out)).SerializeToString() == new
            assert names(out.parent) == ({"b.onnx", "b.onnx.data"} if new_external else {"b.onnx"}), (
                call,
                count,
            )
            if not killed:
                break
    assert kills >= 5


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("external", [False, True])
def test_killed_in_place_over_external_data_leaves_a_whole_model(external: bool, source: Path) -> None:
    """The weights lie elsewhere, so nothing of the source's is needed, and its data is replaced or removed."""
    with_external_data(plain(), source, "a.onnx.data")
    pristine = {name: source.with_name(name).read_bytes() for name in names(source.parent)}
    new = moved(source)
    new.proto.producer_name = "changed"
    whole = [plain().SerializeToString(), inline(new).SerializeToString()]
    for call in SYSTEM_CALLS:
        for count in range(100):
            for name in names(source.parent):
                source.with_name(name).unlink()
            for name, content in pristine.items():
                source.with_name(name).write_bytes(content)
            killed = run_killed(call, count, lambda: save(new, source, external=external, in_place=True))
            assert inline(load(source)).SerializeToString() in whole[not killed :], (call, count)
            if not killed:
                break
        assert names(source.parent) == ({"a.onnx", "a.onnx.data"} if external else {"a.onnx"})


LOOP = """
import sys
from onnx_migrate.files import load, save
first, second, out, external = load(sys.argv[1]), load(sys.argv[2]), sys.argv[3], sys.argv[4] == "True"
print("ready", flush=True)
while True:
    save(first, out, external=external)
    save(second, out, external=external)
"""


@pytest.mark.parametrize("external", [False, True])
def test_kill_9_at_random_moments(external: bool, source: Path, out: Path) -> None:
    second = source.with_name("second.onnx")
    second.write_bytes(other().SerializeToString())
    whole = {plain().SerializeToString(), other().SerializeToString()}
    generator = random.Random(1)
    save(load(source), out, external=external)  # from here on there always has to be a model
    for _ in range(12):
        command = [sys.executable, "-c", LOOP, str(source), str(second), str(out), str(external)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(generator.uniform(0.02, 0.2))
            process.kill()
        assert inline(load(out)).SerializeToString() in whole
    save(load(source), out, external=external)
    assert names(out.parent) == ({"b.onnx", "b.onnx.data"} if external else {"b.onnx"})


def test_a_temporary_file_in_use_is_not_tidied(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    target = out.with_name("b.onnx")
    with newfile.NewFile(target, [b"half"]):
        held = names(out.parent)
        newfile.remove_leftovers(target)
        assert names(out.parent) == held != set()
    assert names(out.parent) == set()
    stray, alike = out.with_name(".b.onnx.123-4.tmp"), out.with_name(".b.onnx.mine.tmp")
    stray.touch()
    alike.touch()
    newfile.remove_leftovers(target)
    assert names(out.parent) == {alike.name}


@pytest.mark.parametrize("nameless", [True, False], ids=["O_TMPFILE", "named"])
@pytest.mark.parametrize("external", [False, True])
def test_a_full_disk(
    external: bool, nameless: bool, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE")
    save(load(other()), out, external=external)
    before = names(out.parent)

    def full(*args: object, **kwargs: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for call in ("copy_file_range", "write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(os, call, full)
            assert "No space left" in str(refusal("cannot-write", changed(source), out, external=external))
        assert names(out.parent) == before
        assert inline(load(out)) == other()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if not shutil.which("mount") or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("external", [False, True])
def test_a_disk_that_is_really_full(external: bool, source: Path, small_disk: Path) -> None:
    out = small_disk / "b.onnx"
    save(load(other()), out, external=external)
    before = names(small_disk)
    source.write_bytes(model([weight("w", 1, 50_000)]).SerializeToString())
    assert "No space left" in str(refusal("cannot-write", changed(source), out, external=external))
    assert names(small_disk) == before
    assert inline(load(out)) == other()


# Copying


def drained(*args: object, **kwargs: object) -> int:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@pytest.mark.parametrize("missing", [(), ("copy_file_range",), ("copy_file_range", "sendfile")])
@pytest.mark.parametrize("how", ["absent", "refused", "blind"])
def test_every_way_of_copying(
    missing: tuple[str, ...], how: str, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "WRITEBACK_STEP", 5000)
    monkeypatch.setattr(copying, "CHUNK", 700)
    for name in missing:
        if how == "absent":
            monkeypatch.delattr(os, name)
        else:
            monkeypatch.setattr(os, name, drained if how == "refused" else lambda *args, **kwargs: 0)
    want = plain()
    want.producer_name = "changed"
    save(changed(source), out)
    assert out.read_bytes() == want.SerializeToString()
    save(changed(source), out, external=True)
    assert inline(load(out)) == want


def test_a_file_cut_while_it_is_copied(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = changed(source)
    copy = os.copy_file_range

    def cut(*args: int, **kwargs: int) -> int:
        os.truncate(source, 100)
        return copy(*args, **kwargs)

    monkeypatch.setattr(os, "copy_file_range", cut)
    with pytest.raises(Exception, match="ends at byte"):
        save(loaded, out)
    assert names(out.parent) == set()


def test_unknown_fields_survive_external_data(source: Path, out: Path) -> None:
    proto = plain()
    proto.graph.initializer[0].MergeFromString(UNKNOWN)
    source.write_bytes(proto.SerializeToString())
    save(load(source), out, external=True)
    tensor = onnx.load(out, load_external_data=False).graph.initializer[0]
    assert tensor.data_location == TensorProto.EXTERNAL
    assert tensor.SerializeToString().endswith(UNKNOWN)
