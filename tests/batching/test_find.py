"""Which models a batch has, and where results go."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    with pytest.raises(UsageError, match="is one of the models"):
        place(find(["in"]), "in")


def test_results_within_a_source_are_not_sources(tree: Path) -> None:
    first = place(find(["in"]), "in/out")
    for _, target in first:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).touch()

    assert place(find(["in"]), "in/out") == first
