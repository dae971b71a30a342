"""Models by URL: what is fetched of them, and what is said of what is not there."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

import onnx
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from onnx_migrate.errors import LoadError
from onnx_migrate.files import inline, load, save
from onnx_migrate.files.places import ensure_local
from onnx_migrate.files.places import url_download as download
from onnx_migrate.files.places.url_download import DownloadedModel
from tests.files.feature_models import plain

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def got(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is fetched, in order."""
    names: list[str] = []
    real = MemoryFileSystem.get_file

    def get_file(self: Any, rpath: str, *args: Any, **kwargs: Any) -> None:
        names.append(rpath)
        real(self, rpath, *args, **kwargs)

    monkeypatch.setattr(MemoryFileSystem, "get_file", get_file)
    return names


def put_external(store: Any, folder: Path, location: str = "a.data") -> onnx.ModelProto:
    """Put a model with external data to memory://m, and a file beside it that is none of its own."""
    proto = plain()
    (folder / "local").mkdir()
    save(load(proto), folder / "local" / "a.onnx", external=True)
    written = onnx.load(folder / "local" / "a.onnx", load_external_data=False)
    for tensor in written.graph.initializer:
        next(entry for entry in tensor.external_data if entry.key == "location").value = location
    store.pipe("/m/a.onnx", written.SerializeToString())
    if not location.startswith(("/", "../")):
        store.pipe(posixpath.normpath(f"/m/{location}"), (folder / "local" / "a.onnx.data").read_bytes())
    store.pipe("/m/secret", b"x")
    store.pipe("/secret", b"x")
    return proto


def refusal(url: str) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load(url)
    assert caught.value.reason.startswith(url)
    assert "/tmp" not in caught.value.reason
    caught.value.__traceback__ = None
    return caught.value


def test_a_model_is_fetched_once_and_is_there_as_long_as_it_is_used(store: Any, got: list[str]) -> None:
    store.pipe("/m/a.onnx", plain().SerializeToString())
    source = ensure_local("memory://m/a.onnx")
    assert isinstance(source, DownloadedModel)
    assert ensure_local(source) is source
    first, second = load(source), load(source)
    del source

    assert got == ["/m/a.onnx"]
    assert first.name == second.name == "memory://m/a.onnx"
    del first
    assert inline(second) == plain()


@pytest.mark.parametrize("location", ["a.data", "..a.data", "weights/deep/a.data", "./x/../b.data"])
def test_only_the_files_that_the_model_names_are_downloaded(
    store: Any, got: list[str], tmp_path: Path, location: str
) -> None:
    proto = put_external(store, tmp_path, location)
    model = load("memory://m/a.onnx")

    assert inline(model) == proto
    assert len(got) == 2
    assert "/m/secret" not in got


@pytest.mark.parametrize("location", ["../secret", "/secret", "x/../../secret", "/m/secret"])
def test_nothing_outside_the_folder_is_fetched(
    store: Any, got: list[str], tmp_path: Path, location: str
) -> None:
    put_external(store, tmp_path, location)

    assert refusal("memory://m/a.onnx").code == "outside-folder"
    assert got == ["/m/a.onnx"]


def test_data_that_is_missing_or_too_short_is_named_by_the_url(store: Any, tmp_path: Path) -> None:
    put_external(store, tmp_path)
    store.pipe("/m/a.data", b"short")

    error = refusal("memory://m/a.onnx")
    assert error.code == "missing-data"
    assert "memory://m/a.data" in error.reason
    store.rm("/m/a.data")
    error = refusal("memory://m/a.onnx")
    assert error.code == "missing-data"
    assert "'a.data', which does not exist" in error.reason


def test_what_is_not_a_model_at_a_url(store: Any) -> None:
    store.pipe("/m/a.onnx", b"hello")
    store.pipe("/m/cut.onnx", plain().SerializeToString()[:-100])

    assert refusal("memory://m/a.onnx").code == "not-onnx"
    assert refusal("memory://m/cut.onnx").code == "truncated"
    assert refusal("memory://m/b.onnx").code == "no-such-file"
    assert refusal("memory://m").code == "is-directory"
    assert refusal("memory://m/").code == "is-directory"


def test_an_error_of_the_server_is_reported_on_one_line(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class CredentialsError(Exception):
        pass

    def get_file(*args: object, **kwargs: object) -> None:
        raise CredentialsError("Unable to locate\ncredentials")

    monkeypatch.setattr(MemoryFileSystem, "get_file", get_file)

    error = refusal("memory://m/a.onnx")
    assert (error.code, error.reason) == (
        "cannot-read",
        "memory://m/a.onnx: cannot be read: CredentialsError: Unable to locate credentials",
    )


def test_a_file_url_is_read_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "a b.onnx"
    save(load(plain()), path, external=True)
    model = load(path.as_uri())

    assert model.weights.source == path
    assert inline(model) == plain()
    with pytest.raises(LoadError, match=r"no\.onnx: no such file"):
        load((tmp_path / "no.onnx").as_uri())


class Web:
    """A server, by the calls that fsspec's HTTP file system takes."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.asked: list[str] = []

    def get_file(self, url: str, target: str, **_: Any) -> None:
        self.asked.append(url)
        if url not in self.pages:
            raise FileNotFoundError(url)
        Path(target).write_bytes(self.pages[url])


@pytest.mark.parametrize(
    ("location", "asked"), [("a b.data", "a%20b.data"), ("%2e%2e/secret", "%252e%252e/secret")]
)
def test_locations_are_quoted_in_an_http_address(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str, asked: str
) -> None:
    put_external(store, tmp_path, location)
    url, beside = "https://host/m/a.onnx?signature=x/a.onnx", f"https://host/m/{asked}"
    web = Web()
    web.pages = {url: store.cat("/m/a.onnx"), beside: store.cat(f"/m/{location}")}
    monkeypatch.setattr(download, "open_file_system", lambda url: (web, url))

    assert inline(load(url)) == plain()
    assert web.asked == [url, beside]
