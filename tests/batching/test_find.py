"""Which models a batch has, and where results go."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from onnx_migrate.batching import find, place
from onnx_migrate.errors import UsageError


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "a.onnx",
        "b/c.onnx",
        "b/d/e.onnx",
        "b/notes.txt",
        ".hidden/f.onnx",
        ".g.onnx",
        "other/a.onnx",
    ):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["in"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["in/b", "in/a.onnx"], ["c.onnx", "d/e.onnx", "a.onnx"]),
        (["in/*.onnx"], ["a.onnx"]),
        (["in/**/*.onnx"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["in/*/c.onnx"], ["b/c.onnx"]),
        (["in/b/notes.txt"], ["notes.txt"]),
        (["in/a.onnx", "in"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["nowhere.onnx"], ["nowhere.onnx"]),
    ],
    ids=str,
)
def test_files_folders_and_patterns(tree: Path, sources: list[str], expected: list[str]) -> None:
    assert sorted(relative for _, relative in find(sources)) == sorted(expected)


@pytest.mark.parametrize("source", ["in/b/d/*.txt", "in/.hidden/none*", "empty"])
def test_where_there_is_none_it_is_said(tree: Path, source: str) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no model in"):
        find([source])


def test_results_keep_the_structure(tree: Path) -> None:
    assert place(find(["in"]), "out")[1] == ("in/b/c.onnx", "out/b/c.onnx")


def test_two_models_of_one_place_are_refused(tree: Path) -> None:
    with pytest.raises(
        UsageError, match=r"in/a.onnx and in/other/a.onnx would both be written to out/a.onnx"
    ):
        place(find(["in/a.onnx", "in/other/a.onnx"]), "out")


def test_models_are_not_written_over(tree: Path) -> None:
    with pytest.raises(UsageError, match="would overwrite one of the models"):
        place(find(["in"]), "in")


def test_results_within_a_source_are_not_sources(tree: Path) -> None:
    first = place(find(["in"]), "in/out")
    for _, target in first:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()

    assert place(find(["in"]), "in/out") == first


@pytest.fixture
def objects(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree as objects of memory://."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    fsspec.filesystem("memory").put(str(tree / "in"), "/in", recursive=True)


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (["in"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["in/"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["in/b", "in/a.onnx"], ["c.onnx", "d/e.onnx", "a.onnx"]),
        (["in/*.onnx"], ["a.onnx"]),
        (["in/*"], ["a.onnx"]),
        (["in/**/*.onnx"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["in/*/c.onnx"], ["b/c.onnx"]),
        (["*/b/c.onnx"], ["in/b/c.onnx"]),
        (["in/b/notes.txt"], ["notes.txt"]),
        (["nowhere.onnx"], ["nowhere.onnx"]),
        (["nowhere"], ["nowhere"]),
    ],
    ids=str,
)
def test_folders_and_patterns_by_url(sources: list[str], expected: list[str]) -> None:
    found = find([f"memory://{source}" for source in sources])

    assert [relative for _, relative in found] == expected
    assert [relative for _, relative in find([path for path, _ in found])] == [
        relative.rpartition("/")[2] for relative in expected
    ]
    for path, _ in found:
        assert path.startswith("memory://")
        assert fsspec.filesystem("memory").exists(path) or "nowhere" in path


@pytest.mark.usefixtures("objects")
def test_where_there_is_none_by_url_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for source in ("memory://in/b/d/*.txt", "memory://in/.hidden/none*"):
        with pytest.raises(UsageError, match="there is no model in memory://"):
            find([source])

    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(MemoryFileSystem, "isdir", denied)
    with pytest.raises(UsageError, match="memory://in: cannot be listed: Permission denied"):
        find(["memory://in"])


@pytest.mark.usefixtures("objects")
def test_a_listing_is_never_of_an_earlier_call(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, list[str]] = {}
    real = MemoryFileSystem.find

    def cached(self: MemoryFileSystem, path: str) -> list[str]:
        if path not in kept:
            kept[path] = real(self, path)
        return kept[path]

    monkeypatch.setattr(MemoryFileSystem, "find", cached)
    monkeypatch.setattr(MemoryFileSystem, "invalidate_cache", lambda self: kept.clear())
    before = find(["memory://in"])
    fsspec.filesystem("memory").pipe("/in/z.onnx", b"x")

    assert find(["memory://in"]) == [*before, ("memory://in/z.onnx", "z.onnx")]


@pytest.mark.usefixtures("objects")
def test_a_model_named_outright_costs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MemoryFileSystem, "info", None)

    assert find(["memory://in/a.onnx"]) == [("memory://in/a.onnx", "a.onnx")]
    signed = "https://host/in/a.onnx?signature=a/b*"
    assert find([signed]) == [(signed, "a.onnx")]


@pytest.mark.usefixtures("objects")
def test_results_by_url_keep_the_structure() -> None:
    deep = ("memory://in/b/c.onnx", "memory://out/b/c.onnx")

    assert place(find(["memory://in"]), "memory://out")[1] == deep
    assert place(find(["memory://in"]), "memory://out/")[1] == deep
    assert place(find(["memory://in"]), "out")[1] == (deep[0], "out/b/c.onnx")
    assert place(find(["in"]), "memory://out")[1] == ("in/b/c.onnx", deep[1])
    with pytest.raises(UsageError, match=r"memory:///in/a\.onnx would overwrite one of the models"):
        place(find(["memory://in"]), "memory:///in/")
    with pytest.raises(UsageError, match=r"would both be written to memory://out/a\.onnx"):
        place(find(["memory://in/a.onnx", "memory://in/other/a.onnx"]), "memory://out")


@pytest.mark.usefixtures("objects")
def test_results_within_a_source_by_url_are_not_sources() -> None:
    first = place(find(["memory://in"]), "memory://in/out")
    for _, target in first:
        fsspec.filesystem("memory").pipe(target, b"x")

    assert place(find(["memory://in"]), "memory://in/out") == first


def test_a_file_url_is_a_path(tree: Path) -> None:
    assert place(find([(tree / "in").as_uri()]), (tree / "out").as_uri()) == place(
        find([str(tree / "in")]), tree / "out"
    )


def test_a_folder_that_cannot_be_listed_is_not_passed_over(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("d"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr("os.scandir", closed)

    with pytest.raises(UsageError, match=r"the folder in/b/d cannot be listed: Permission denied"):
        find(["in"])
