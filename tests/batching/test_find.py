"""Which models a batch has, and where results go."""

from __future__ import annotations

import os
import re
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


@pytest.fixture
def objects(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tree as objects of memory://."""
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    monkeypatch.setattr(MemoryFileSystem, "pseudo_dirs", [""])
    fsspec.filesystem("memory").put(str(tree / "in"), "/in", recursive=True)


by_path_and_by_url = pytest.mark.parametrize("at", ["", "memory://"])


@by_path_and_by_url
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
        (["in/a.onnx", "in"], ["a.onnx", "b/c.onnx", "b/d/e.onnx", "other/a.onnx"]),
        (["nowhere.onnx"], ["nowhere.onnx"]),
        (["nowhere"], ["nowhere"]),
    ],
    ids=str,
)
def test_files_folders_and_patterns(at: str, sources: list[str], expected: list[str]) -> None:
    found = find([f"{at}{source}" for source in sources])

    assert [relative for _, relative in found] == expected
    assert [relative for _, relative in find([path for path, _ in found])] == [
        relative.rpartition("/")[2] for relative in expected
    ]
    for path, _ in found:
        assert path.startswith(at)
        if at:
            assert fsspec.filesystem("memory").exists(path) or "nowhere" in path


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    "source",
    ["in/b/d/*.txt", "in/.hidden/none*", "empty", "memory://in/b/d/*.txt", "memory://in/.hidden/none*"],
)
def test_where_there_is_none_it_is_said(tree: Path, source: str) -> None:
    (tree / "empty").mkdir()
    with pytest.raises(UsageError, match=f"there is no model in {re.escape(source)}"):
        find([source])


@pytest.mark.usefixtures("objects")
def test_a_folder_that_cannot_be_listed_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def closed(path: str) -> object:
        if str(path).endswith("d"):
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr("os.scandir", closed)
    with pytest.raises(UsageError, match=r"the folder in/b/d cannot be listed: Permission denied"):
        find(["in"])

    def denied(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(MemoryFileSystem, "isdir", denied)
    with pytest.raises(UsageError, match="memory://in: cannot be listed: Permission denied"):
        find(["memory://in"])


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(
    ("source", "out", "result"),
    [
        ("in", "out", "out/b/c.onnx"),
        ("in", "memory://out", "memory://out/b/c.onnx"),
        ("memory://in", "memory://out", "memory://out/b/c.onnx"),
        ("memory://in", "memory://out/", "memory://out/b/c.onnx"),
        ("memory://in", "out", "out/b/c.onnx"),
    ],
)
def test_results_keep_the_structure(source: str, out: str, result: str) -> None:
    assert place(find([source]), out)[1] == (f"{source}/b/c.onnx", result)


@by_path_and_by_url
@pytest.mark.usefixtures("objects")
def test_no_result_takes_the_place_of_a_model_or_of_another_result(at: str) -> None:
    both = f"{at}in/a.onnx and {at}in/other/a.onnx would both be written to {at}out/a.onnx"
    with pytest.raises(UsageError, match=re.escape(both)):
        place(find([f"{at}in/a.onnx", f"{at}in/other/a.onnx"]), f"{at}out")
    same = f"{at}/in/" if at else "in"
    with pytest.raises(UsageError, match=f"{same.rstrip('/')}/a.onnx would overwrite one of the models"):
        place(find([f"{at}in"]), same)


@by_path_and_by_url
@pytest.mark.usefixtures("objects")
def test_results_within_a_source_are_not_sources(at: str) -> None:
    first = place(find([f"{at}in"]), f"{at}in/out")
    for _, target in first:
        if at:
            fsspec.filesystem("memory").pipe(target, b"x")
        else:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            Path(target).touch()

    assert place(find([f"{at}in"]), f"{at}in/out") == first


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


def test_a_file_url_is_a_path(tree: Path) -> None:
    assert place(find([(tree / "in").as_uri()]), (tree / "out").as_uri()) == place(
        find([str(tree / "in")]), tree / "out"
    )
