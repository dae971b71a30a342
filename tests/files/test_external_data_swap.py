"""A model and its data file are replaced together: whenever a save is killed, one whole model is there."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files import inline, load, save
from onnx_migrate.files.external_data_swap import ExternalDataSwap
from onnx_migrate.model.payloads import file_stamp
from tests.files.feature_models import plain, with_external_data
from tests.files.saving import moved, names, other, refusal
from tests.support.processes import Start
from tests.support.warm_start import warm


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder in memory where the system has one: these tests call fsync 20,000 times, each of which waits for a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="external-data-", dir=memory) as folder:
        yield Path(folder)


def test_a_data_file_of_no_known_model_is_never_replaced(source: Path, out: Path) -> None:
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


def test_the_data_of_the_source_is_never_overwritten(source: Path) -> None:
    with_external_data(plain(), source, "b.onnx.data")
    data = (source.parent / "b.onnx.data").read_bytes()
    refusal("would-overwrite", load(source), source.parent / "b.onnx.data")
    refusal("would-overwrite", load(source), source.parent / "b.onnx", external=True)
    shutil.copy(source, source.parent / "b.onnx")  # two models that share their data
    refusal("would-overwrite", load(source), source.parent / "b.onnx", external=True)
    save(load(source), source.parent / "b.onnx")
    assert (source.parent / "b.onnx.data").read_bytes() == data
    assert inline(load(source)) == inline(load(source.parent / "b.onnx")) == plain()


def test_data_that_the_source_shares_with_the_target_stays(source: Path) -> None:
    """The target's old data is removed with it, unless it also holds weights of the source."""
    with_external_data(plain(), source, "b.onnx.data")
    data, target = source.with_name("b.onnx.data"), source.with_name("b.onnx")
    before = data.read_bytes()
    shutil.copy(source, target)

    refusal("would-overwrite", moved(source), target, external=True)
    save(moved(source), target)

    assert data.read_bytes() == before
    assert inline(load(source)) == inline(load(target)) == plain()


SYSTEM_CALLS = ["link", "replace", "unlink", "fsync", "write", "copy_file_range", "open", "fchmod"]


def run_killed(call: str, count: int, action: Callable[[], None]) -> bool:
    """Run `action` in a child that is killed at its `count`th `call`; return whether it made that many calls."""
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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("external", [False, True])
def test_killed_in_place_over_external_data_leaves_a_whole_model(external: bool, source: Path) -> None:
    """The weights come from other files, so the source's data is not needed and is replaced or removed."""
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


@pytest.mark.parametrize("old_data", [None, b"of an older model"], ids=["removed", "there"])
def test_data_that_an_interrupted_save_left_at_a_hidden_name_is_moved(
    old_data: bytes | None, source: Path
) -> None:
    with_external_data(plain(), source, ".a.onnx.data.1")
    if old_data is not None:
        data = source.with_name("a.onnx.data")
        data.write_bytes(old_data)
        source.with_name(".a.onnx.data.owned").write_text(f"{file_stamp(data.stat())!r}\n")
    save(load(source), source, in_place=True)
    assert inline(load(source)) == plain()
    save(load(source), source, in_place=True, external=True)
    assert names(source.parent) == {"a.onnx", "a.onnx.data"}
    assert inline(load(source)) == plain()


LOOP = """
import sys
from onnx_migrate.files import load, save
first, second, out, external = load(sys.argv[1]), load(sys.argv[2]), sys.argv[3], sys.argv[4] == "True"
print("ready", flush=True)
while True:
    save(first, out, external=external)
    save(second, out, external=external)
"""


@pytest.mark.long
@pytest.mark.parametrize("external", [False, True])
def test_kill_9_at_random_moments(external: bool, source: Path, out: Path) -> None:
    second = source.with_name("second.onnx")
    second.write_bytes(other().SerializeToString())
    whole = {plain().SerializeToString(), other().SerializeToString()}
    generator = random.Random(1)
    save(load(source), out, external=external)  # from here on there always has to be a model
    for _ in range(12):
        command = [sys.executable, "-c", warm(LOOP), str(source), str(second), str(out), str(external)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(generator.uniform(0.02, 0.2))
            process.kill()
        assert inline(load(out)).SerializeToString() in whole
    save(load(source), out, external=external)
    assert names(out.parent) == ({"b.onnx", "b.onnx.data"} if external else {"b.onnx"})


def failing(call: str, count: int, *, once: bool) -> Callable[..., object]:
    """Return os.`call` failing with an I/O error at its `count`th call, and at all later ones unless `once`."""
    original, left = getattr(os, call), [count]

    def fails(*args: object, **kwargs: object) -> object:
        left[0] -= 1
        if left[0] == -1 or (left[0] < 0 and not once):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return original(*args, **kwargs)

    fails.calls = left  # type: ignore[attr-defined]
    return fails


@pytest.mark.filterwarnings("ignore:.* is written, but:RuntimeWarning")
@pytest.mark.parametrize("once", [True, False], ids=["once", "from then on"])
@pytest.mark.parametrize("old_external", [False, True])
@pytest.mark.parametrize("new_external", [False, True])
def test_an_error_of_any_system_call_leaves_all_as_it_was_or_the_new_model(
    old_external: bool,
    new_external: bool,
    once: bool,
    source: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = other().SerializeToString(), plain().SerializeToString()
    refused = warned = 0
    for call in (*SYSTEM_CALLS, "close", "stat"):
        for count in range(200):
            shutil.rmtree(out.parent)
            out.parent.mkdir()
            save(load(other()), out, external=old_external)
            before = {path.name: path.read_bytes() for path in out.parent.iterdir()}
            loaded = load(source)
            with monkeypatch.context() as patch:
                patch.setattr(os, call, fails := failing(call, count, once=once))
                try:
                    save(loaded, out, external=new_external)
                except (SaveError, LoadError):
                    failed = True
                else:
                    failed = False
            if fails.calls[0] >= 0:  # type: ignore[attr-defined]
                break
            got = inline(load(out)).SerializeToString()
            assert got == (old if failed else new), (call, count)
            after = {path.name: path.read_bytes() for path in out.parent.iterdir()}
            if failed and (once or call != "unlink"):
                assert after == before, (call, count)
            refused += failed
            warned += not failed and names(out.parent) != {"b.onnx", "b.onnx.data"}
            save(load(source), out, external=new_external)
            assert names(out.parent) == ({"b.onnx", "b.onnx.data"} if new_external else {"b.onnx"}), (
                call,
                count,
            )
            assert inline(load(out)).SerializeToString() == new
    assert refused >= 5


WRITER = """
import sys
from onnx_migrate.files import load, save
model = load(sys.argv[1])
print("ready", flush=True)
for _ in range(60):
    save(model, sys.argv[2], external=True)
"""


def test_two_writers_of_one_output_leave_the_model_of_one(source: Path, out: Path, start: Start) -> None:
    second = source.with_name("second.onnx")
    second.write_bytes(other().SerializeToString())
    writers = [
        start([sys.executable, "-c", warm(WRITER), str(path), str(out)], stdout=subprocess.PIPE)
        for path in (source, second)
    ]
    ended = [writer.communicate(timeout=120) and writer.returncode for writer in writers]

    assert ended == [0, 0]
    assert inline(load(out)).SerializeToString() in {
        plain().SerializeToString(), other().SerializeToString(),
    }  # fmt: skip
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}


def test_a_save_that_another_publishes_just_before_is_no_refusal(
    source: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, checks = ExternalDataSwap.check_replaceable, []

    def after_another(swap: ExternalDataSwap) -> None:
        checks.append(swap)
        if len(checks) == 1:
            save(load(other()), out, external=True)
        check(swap)

    monkeypatch.setattr(ExternalDataSwap, "check_replaceable", after_another)
    save(load(source), out, external=True)

    assert inline(load(out)) == plain()
    assert names(out.parent) == {"b.onnx", "b.onnx.data"}


def test_models_that_share_their_data_keep_it_for_each_other(source: Path) -> None:
    with_external_data(plain(), source, "a.onnx.data")
    second = source.with_name("b.onnx")
    shutil.copy(source, second)
    data = source.with_name("a.onnx.data").read_bytes()

    error = refusal("would-overwrite", moved(source), source, external=True, in_place=True)
    assert "holds weights of b.onnx too" in error.reason
    save(moved(source), source, in_place=True)

    assert source.with_name("a.onnx.data").read_bytes() == data
    assert inline(load(source)) == inline(load(second)) == plain()
    save(moved(second), second, in_place=True)
    second.unlink()
    shutil.copy(source, second)


def swap_of(out: Path, *needed: Path) -> ExternalDataSwap:
    return ExternalDataSwap(out, str(out), [str(path) for path in needed])


def test_data_that_the_new_model_is_read_from_is_not_replaced(out: Path) -> None:
    save(load(other()), out, external=True)
    swap = swap_of(out, out.with_name("b.onnx.data"))

    with pytest.raises(SaveError, match="holds weights of the source model"):
        swap.check_replaceable()


def test_a_data_file_without_a_model_is_replaced_only_if_a_mark_describes_it(out: Path) -> None:
    data = out.with_name("b.onnx.data")
    data.write_bytes(b"written by a save that was killed")
    out.with_name(".b.onnx.data.owned").write_text(f"{file_stamp(data.stat())!r}\n", encoding="utf-8")
    swap_of(out).check_replaceable()

    data.write_bytes(b"written by somebody else since")
    with pytest.raises(SaveError, match="does not belong to"):
        swap_of(out).check_replaceable()
