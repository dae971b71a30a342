"""Inputs in each format that users have: what is read, for which input, and what is wrong with files that are no inputs."""

from __future__ import annotations

import base64
import io
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs.given import GivenInputs, absolute_text, data_files, path_of, texts_of
from onnx_migrate.verify.inputs.readers import tensors
from onnx_migrate.verify.inputs.source import Source
from onnx_migrate.verify.inputs.user_inputs import Feeds
from tests.verify.harness import net

ONE = "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
TWO = "(float[2,3] x, int64[N] n) => (float[2,3] y) { c = Cast<to=1>(n) s = ReduceSum<keepdims=0>(c) y = Add(x, s) }"
X, N = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(4, np.int64)


def feeds(data: Any, graph: str = ONE, **options: Any) -> Feeds:
    return GivenInputs(data, **options).bind(net(graph))


def values(found: Feeds, name: str = "x") -> list[float]:
    """Return the first number of an input in each feed."""
    return [float(feed.inputs[name].flat[0]) for feed in found.sets]


def saved(folder: Path, *names: str, array: Any = X) -> Path:
    """Write an .npy for each name, with the place of the name added, and return the folder."""
    folder.mkdir(exist_ok=True)
    for place, name in enumerate(names):
        np.save(folder / f"{name}.npy", array + place)
    return folder


def tensor(path: Path, array: Any) -> None:
    path.write_bytes(numpy_helper.from_array(array).SerializeToString())


def encoded(array: Any) -> dict[str, str]:
    """Return an array as Polygraphy writes it."""
    stream = io.BytesIO()
    np.save(stream, array)
    return {"array": base64.b64encode(stream.getvalue()).decode(), "polygraphy_class": "ndarray"}


def test_an_npy_is_the_only_input_or_the_one_that_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", N)
    assert np.array_equal(feeds(tmp_path / "a.npy").sets[0].inputs["x"], X)
    (feed,) = feeds([f"x={tmp_path / 'a.npy'}", f"n={tmp_path / 'b.npy'}"], TWO).sets
    assert np.array_equal(feed.inputs["n"], N)
    assert feed.name == "a.npy"
    for given, message in (
        (tmp_path / "a.npy", "values of one input, and the model has 2 inputs.*write NAME="),
        (f"y={tmp_path / 'a.npy'}", "the model has no input 'y'"),
        ([f"x={tmp_path / 'a.npy'}"] * 2, "two sources have values of input 'x'"),
        (f"n={tmp_path / 'b.npy'}", "no value for input 'x'"),
    ):
        with pytest.raises(UsageError) as caught:
            feeds(given, TWO)
        assert re.search(message, caught.value.with_hint)


def test_a_folder_of_npy_has_a_feed_for_each_file_in_the_order_of_numbers(tmp_path: Path) -> None:
    saved(tmp_path, "img10", "img9", "img1")
    assert values(feeds(tmp_path)) == [2, 1, 0]
    assert [feed.name for feed in feeds(tmp_path).sets] == ["img1.npy", "img9.npy", "img10.npy"]


def test_a_folder_of_npy_named_like_the_inputs_is_one_feed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "n.npy", N)
    (feed,) = feeds(tmp_path, TWO).sets
    assert set(feed.inputs) == {"x", "n"}


def test_a_single_file_repeats_beside_a_folder_and_other_counts_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "images", "a", "b", "c")
    np.save(tmp_path / "n.npy", N)
    found = feeds([f"x={folder}", f"n={tmp_path / 'n.npy'}"], TWO)
    assert values(found) == [0, 1, 2]
    assert values(found, "n") == [1, 1, 1]
    other = saved(tmp_path / "numbers", "a", "b", array=N)
    with pytest.raises(UsageError, match=r"images has 3 values and n=.*numbers has 2 values"):
        feeds([f"x={folder}", f"n={other}"], TWO)


def test_a_folder_of_tensors_has_data_sets_or_a_feed_for_each_file(tmp_path: Path) -> None:
    for at in range(2):
        tensor(tmp_path / f"{at}.pb", X + at)
    assert values(feeds(tmp_path)) == [0, 1]
    sets = tmp_path / "sets"
    for at in (0, 10, 2):
        (sets / f"test_data_set_{at}").mkdir(parents=True)
        tensor(sets / f"test_data_set_{at}" / "input_0.pb", X + at)
        tensor(sets / f"test_data_set_{at}" / "output_0.pb", X)
    found = feeds(sets)
    assert values(found) == [0, 2, 10]
    assert set(found.sets[0].expected) == {"y"}
    assert values(feeds(f"x={tmp_path / '1.pb'}")) == [1]


class CountedFiles(list[Path]):
    """Files, with the number of times that somebody went through them."""

    rounds = 0

    def __iter__(self) -> Iterator[Path]:
        self.rounds += 1
        return super().__iter__()


def test_the_time_to_read_data_sets_is_linear_in_their_number(tmp_path: Path) -> None:
    rounds = []
    for count in (2, 20):
        files = CountedFiles()
        for at in range(count):
            folder = tmp_path / f"{count} sets" / f"test_data_set_{at}"
            folder.mkdir(parents=True)
            tensor(folder / "input_0.pb", X + at)
            files.append(folder / "input_0.pb")
        unused: Any = None
        part = tensors.read_folder(Source(tmp_path, "", unused, unused, 100, unused), files)
        assert [feed.inputs["#0"][0, 0] for feed in part.feeds] == [*range(count)]
        rounds.append(files.rounds)

    assert rounds[0] == rounds[1]


def test_files_of_the_format_of_a_folder_are_not_looked_up_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(tmp_path, "a", "b", "c")
    (tmp_path / "labels.txt").write_text("cat")
    looked_up: list[str] = []
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda path: looked_up.append(path.name) or is_file(path))
    found = feeds(tmp_path)

    assert "has 1 other file, which was not read" in " ".join(found.notes)
    assert looked_up == ["labels.txt"]


@pytest.mark.parametrize("ending", ["npy", "pb"])
def test_feeds_of_files_read_their_values_in_another_process(tmp_path: Path, ending: str) -> None:
    if ending == "npy":
        saved(tmp_path, "a", "b")
    else:
        tensor(tmp_path / "a.pb", X)
        tensor(tmp_path / "b.pb", X + 1)
    reads = [feed.inputs.read for feed in feeds(tmp_path).sets]

    assert all(len(pickle.dumps(read)) < 1000 for read in reads)
    assert [pickle.loads(pickle.dumps(read))()["x"][0, 0] for read in reads] == [0, 1]


def test_a_folder_of_npz_has_a_feed_for_each_file(tmp_path: Path) -> None:
    for at in range(3):
        np.savez(tmp_path / f"{at}.npz", x=X + at, n=N)
    assert values(feeds(tmp_path, TWO)) == [0, 1, 2]
    np.savez(tmp_path / "one.npz", arr_0=X)
    assert values(feeds(f"x={tmp_path / 'one.npz'}")) == [0]
    with pytest.raises(UsageError, match="has 2 arrays with names of their own"):
        feeds(f"x={tmp_path / '0.npz'}", TWO)


@pytest.mark.parametrize("form", ["list", "one", "plain", "former", "folder"])
def test_the_json_of_polygraphy_is_read(tmp_path: Path, form: str) -> None:
    sets: Any = [{"x": encoded(X + at), "n": encoded(N)} for at in range(2)]
    if form == "plain":
        sets = [{"x": (X + at).tolist(), "n": N.tolist()} for at in range(2)]
    if form == "former":
        for each in sets:
            each["x"]["__polygraphy_encoded_ndarray"] = each["x"].pop("polygraphy_class")
    path = tmp_path / "in.json"
    if form == "folder":
        for at, each in enumerate(sets):
            (tmp_path / f"{at:010}.json").write_text(json.dumps(each))
        path = tmp_path
    else:
        path.write_text(json.dumps(sets[0] if form == "one" else sets))
    assert values(feeds(path, TWO)) == ([0] if form == "one" else [0, 1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "in.json: cannot be read as input data"),
        ("[]", "has no inputs by name"),
        ("[[1, 2]]", "has no inputs by name"),
        (
            '[{"x": {"tensor": "aaaa", "polygraphy_class": "Tensor"}}]',
            "class Tensor.*--data-loader-backend-module numpy",
        ),
        ('[{"x": {"array": "aaaa", "polygraphy_class": "ndarray"}}]', "cannot be read as input data"),
        ('[{"lst": [], "polygraphy_class": "RunResults"}]', "class RunResults, and only arrays"),
        ('[{"x": [[1.5]]}]', r"is float32\[1, 1\], expected float\[2, 3\]"),
    ],
)
def test_json_of_another_kind_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "in.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        feeds(tmp_path / "in.json")


def _archive(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize("encoding", ["base64", "latin-1"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        _archive(),
        b"PK\x03\x04" + bytes(20),
        _archive(x=X)[:-30],
        _archive(x=X).replace(b"\x93NUMPY", b"\x93RUMPY"),
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}".ljust(128),
    ],
    ids=["empty", "no array", "no archive", "cut archive", "other bytes", "no header", "no numbers"],
)
def test_json_with_the_bytes_of_no_array_is_refused(tmp_path: Path, content: bytes, encoding: str) -> None:
    text = base64.b64encode(content).decode() if encoding == "base64" else content.decode("latin-1")
    path = tmp_path / "in.json"
    path.write_text(json.dumps([{"x": {"array": text, "polygraphy_class": "ndarray"}}]))
    with pytest.raises(UsageError, match=r"in\.json: cannot be read as input data: .") as caught:
        feeds(path)

    assert caught.value.code == "input-data"
    assert "as polygraphy run --save-inputs writes" in caught.value.hint


def test_a_folder_without_inputs_or_with_several_formats_is_refused(tmp_path: Path) -> None:
    empty, mixed = tmp_path / "empty", saved(tmp_path / "mixed", "a", "b")
    empty.mkdir()
    tensor(mixed / "c.pb", X)
    (tmp_path / "x.bin").write_bytes(b"1234")
    for path, message in (
        (empty, "empty: the folder is empty"),
        (mixed, "files of several formats: 2 .npy and 1 .pb"),
        (tmp_path / "x.bin", "its format is not known"),
        (tmp_path / "no.npy", "no.npy: cannot be read as input data: No such file"),
    ):
        with pytest.raises(UsageError, match=message) as caught:
            feeds(path)
        assert caught.value.hint
    (empty / "labels.txt").write_text("cat")
    with pytest.raises(UsageError, match="contains no inputs"):
        feeds(empty)


def test_a_huge_folder_is_used_in_part_and_the_notes_say_so(tmp_path: Path) -> None:
    saved(tmp_path, *map(str, range(10)))
    found = feeds(tmp_path, most=5)
    assert values(found) == [0, 2, 4, 6, 8]
    assert "5 of 10" in " ".join(found.notes)


def test_floats_of_another_type_are_rounded_and_the_notes_say_so(tmp_path: Path) -> None:
    saved(tmp_path, "a", "b", array=X.astype(np.float64))
    found = feeds(tmp_path)
    assert found.sets[0].inputs["x"].dtype == np.float32
    assert "input 'x' is float32, so 2 values of float64 were rounded to it" in found.notes
    assert not feeds({"x": X}).notes
    half = "(float16[2,3] x) => (float16[2,3] y) { y = Relu(x) }"
    with pytest.raises(UsageError, match=r"input 'x' has 1e.06, which float16 cannot hold"):
        feeds({"x": X + 1e6}, half)


def test_notes_name_nan() -> None:
    nan = np.where(X == 3, np.float32("nan"), X)
    (note,) = feeds([{"x": X}, {"x": nan}]).notes
    assert note.startswith("input 'x' has 1 NaN in input_data 1")


def test_texts_are_told_from_data_and_their_files_are_found(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a=b", "x")
    assert texts_of([{"x": X}]) == texts_of({"x": X}) == texts_of((X,)) == texts_of(None) == []
    assert data_files([str(folder), f"x={folder / 'x.npy'}"]) == [folder / "x.npy"] * 2
    assert [path_of(text) for text in ("m.sub:f", "x=a.npy", "f.py:g")] == ["", "a.npy", ""]
    assert absolute_text("m:f") == "m:f"
    assert absolute_text("x=a.npy") == f"x={Path('a.npy').absolute()}"


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((9, 1, 3, 4, 6), "the array holds 9 sets: write a file for each set"),
        ((9, 3, 4, 6), "the array holds 9 rows: write a file for each set"),
        ((3, 4, 6), r"array\[None\] adds it"),
        ((1, 4, 6, 3), r"array.transpose\(0, 3, 1, 2\)"),
        ((7,), None),
    ],
)
def test_a_shape_that_is_nearly_right_has_advice(shape: tuple[int, ...], hint: str | None) -> None:
    with pytest.raises(UsageError, match=r"expected float\[1, 3, 4, 6\]") as caught:
        feeds({"x": np.zeros(shape, np.float32)}, "(float[1,3,4,6] x) => (float[1,3,4,6] y) { y = Relu(x) }")
    assert re.search(hint, caught.value.hint) if hint else not caught.value.hint
