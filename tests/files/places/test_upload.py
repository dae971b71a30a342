"""Results by URL: whole or not at all, whatever happens on the way."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from onnx_migrate.errors import SaveError, UsageError
from onnx_migrate.files import check_not_source, check_target, inline, load, save
from onnx_migrate.files.places.url_upload import upload
from tests.files.feature_models import model, plain, weight
from tests.files.saving import other

URL = "memory://out/folder/b.onnx"
PATH = "/out/folder/b.onnx"


pytestmark = pytest.mark.usefixtures("store")


def objects(store: Any) -> dict[str, bytes]:
    return {name: store.cat(name) for name in store.find("/")}


def test_one_object_with_the_bytes_of_the_file(store: Any, tmp_path: Path) -> None:
    save(load(plain()), URL)
    save(load(plain()), tmp_path / "b.onnx")

    assert objects(store) == {PATH: (tmp_path / "b.onnx").read_bytes()}


def test_external_data_is_sent_as_a_second_object(store: Any) -> None:
    save(load(plain()), URL, external=True)
    before = objects(store)
    (data,) = before.keys() - {PATH}

    assert data.startswith(f"{PATH}.")
    assert data.endswith(".data")
    assert len(before[PATH]) < 1000
    assert inline(load(URL)) == plain()
    save(load(plain()), URL, external=True)
    assert objects(store) == before


def test_other_data_has_another_name(store: Any) -> None:
    save(load(plain()), URL, external=True)
    before = objects(store)
    save(load(other()), URL, external=True)

    assert inline(load(URL)) == other()
    assert {name: data for name, data in objects(store).items() if name in before and name != PATH} == {
        name: data for name, data in before.items() if name != PATH
    }


def cut(self: Any, lpath: str, rpath: str, **kwargs: object) -> None:
    """Leave half of a file, as a server does when the connection breaks."""
    data = Path(lpath).read_bytes()
    self.pipe_file(rpath, data[: len(data) // 2])
    raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def interrupted(self: Any, lpath: str, rpath: str, **kwargs: object) -> None:
    self.pipe_file(rpath, b"half")
    raise KeyboardInterrupt


def not_moved(self: Any, path1: str, path2: str, **kwargs: object) -> None:
    """Do nothing and report no error, as WebHDFS does if the target of a rename exists."""


def denied(self: Any, path1: str, path2: str, **kwargs: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize(
    ("step", "failure", "error"),
    [
        ("put_file", cut, SaveError),
        ("put_file", interrupted, KeyboardInterrupt),
        ("mv", not_moved, SaveError),
        ("mv", denied, SaveError),
    ],
)
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("exists", [False, True])
def test_a_failed_upload_leaves_the_old_objects(
    store: Any,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    failure: Callable[..., None],
    error: type[BaseException],
    external: bool,
    exists: bool,
) -> None:
    if exists:
        save(load(plain()), URL, external=external)
    before = objects(store)
    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, step, failure)
        with pytest.raises(error) as caught:
            save(load(other()), URL, external=external)
    if isinstance(caught.value, SaveError):
        assert caught.value.reason.startswith(f"{URL}: cannot be written: ")
        assert caught.value.code == "cannot-write"
    assert objects(store) == before


@pytest.mark.parametrize("suffix", [".onnx", ".data"])
def test_a_failure_of_one_of_two_leaves_the_old_model_whole(
    store: Any, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    save(load(plain()), URL, external=True)
    real = MemoryFileSystem.put_file

    def put_file(self: Any, lpath: str, rpath: str, **kwargs: object) -> None:
        (cut if lpath.endswith(suffix) else real)(self, lpath, rpath, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryFileSystem, "put_file", put_file)
        with pytest.raises(SaveError):
            save(load(other()), URL, external=True)

    assert inline(load(URL)) == plain()


def test_where_a_put_is_atomic_nothing_is_moved(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFileSystem, "protocol", ("s3", "s3a"))
    monkeypatch.setattr(MemoryFileSystem, "mv", denied)
    save(load(plain()), URL, external=True)

    assert inline(load(URL)) == plain()


def test_the_model_itself_is_written_over_only_in_place(store: Any) -> None:
    save(load(plain()), URL)
    read = load(URL)

    for url in (URL, "memory:///out/folder/b.onnx"):
        with pytest.raises(SaveError) as caught:
            save(read, url)
        assert caught.value.code == "in-place"
        with pytest.raises(SaveError, match="is the source model itself"):
            check_target(url, source=URL)
    read.proto.producer_name = "changed"
    save(read, URL, in_place=True)
    assert load(URL).proto.producer_name == "changed"


@pytest.mark.parametrize("location", ["w.bin", "./w.bin", "sub/../w.bin"])
def test_the_external_data_of_the_model_is_no_target(location: str, store: Any) -> None:
    proto = model([weight("w", 7)])
    tensor = proto.graph.initializer[0]
    store.pipe("/out/folder/w.bin", tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    store.pipe(PATH, proto.SerializeToString())
    before, read = objects(store), load(URL)
    moved = load(inline(read))
    moved.origin = read.origin

    for url in ("memory://out/folder/w.bin", "memory:///out/folder/w.bin"):
        for act in (
            lambda url: save(read, url),
            lambda url: save(moved, url),
            lambda url: check_not_source([url], read.origin),
        ):
            with pytest.raises(SaveError) as caught:
                act(url)
            assert caught.value.code == "would-overwrite"
            assert caught.value.reason == f"{url} is a file that the model is read from"
    assert objects(store) == before


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("https://host/b.onnx", "cannot-write"),
        ("memory://out/", "is-directory"),
        ("memory://out/..", "is-directory"),
        ("nonsense://b.onnx", "usage"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(url: str, code: str) -> None:
    for act in (check_target, lambda name: save(load(plain()), name)):
        with pytest.raises((SaveError, UsageError)) as caught:
            act(url)
        assert caught.value.code == code
        assert caught.value.reason.startswith(url)


def test_a_folder_is_not_written_into(store: Any) -> None:
    store.pipe("/out/a.onnx", b"x")

    with pytest.raises(SaveError, match=r"memory://out: cannot be written: Is a directory"):
        save(load(plain()), "memory://out")
    assert objects(store) == {"/out/a.onnx": b"x"}


def test_a_model_and_its_data_file_are_sent_under_names_that_fit(store: Any, tmp_path: Path) -> None:
    save(load(plain()), tmp_path / "b.onnx", external=True)
    local = (tmp_path / "b.onnx.data").read_bytes()
    upload(tmp_path / "b.onnx", URL)
    (data,) = objects(store).keys() - {PATH}

    assert store.cat(data) == local
    assert {
        entry.value
        for tensor in onnx.load_from_string(store.cat(PATH)).graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    } == {data.rpartition("/")[2]}


def test_a_local_failure_names_the_url(monkeypatch: pytest.MonkeyPatch, store: Any) -> None:
    def full(*args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys.modules["onnx_migrate.files.saving"], "_save", full)
    with pytest.raises(SaveError, match=r"^memory://out/folder/b\.onnx: .*No space left on device"):
        save(load(plain()), URL)
    assert not objects(store)


def test_a_file_url_is_written_where_it_is_to_lie(tmp_path: Path) -> None:
    path = tmp_path / "a b.onnx"
    save(load(plain()), path.as_uri())

    assert onnx.load(path) == plain()
    with pytest.raises(SaveError) as caught:
        save(load(path), path.as_uri())
    assert caught.value.code == "in-place"
