"""The user's own inputs are read and checked."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs.user_inputs import Feed, Feeds, check_feed
from tests.verify.harness import net

ADD = "(float[2,3] x, int64[N] n) => (float[2,3] y) { c = Cast<to=1>(n) s = ReduceSum<keepdims=0>(c) y = Add (x, s) }"
X, N = np.ones((2, 3), np.float32), np.ones(4, np.int64)


def test_npz_and_folders_are_read(tmp_path):
    np.savez(tmp_path / "in.npz", x=X, n=N)
    feed = check_feed(net(ADD), Feeds.read(tmp_path / "in.npz").sets[0])
    assert set(feed.inputs) == {"x", "n"}
    for index, array in enumerate((X, N)):
        (tmp_path / f"input_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    (tmp_path / "output_0.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    feed = check_feed(net(ADD), Feeds.read(tmp_path).sets[0])
    assert np.array_equal(feed.inputs["n"], N)
    assert set(feed.expected) == {"y"}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "no value for input 'n'.*expected inputs: x: float"),
        ({"x": X, "n": N, "z": N}, "no input is named 'z'"),
        ({"x": X.T, "n": N}, r"input 'x' is float32\[3, 2\], expected float\[2, 3\]"),
        ({"x": X, "n": N.astype(np.int32)}, r"input 'n' is int32\[4\], expected int64\[N\]"),
    ],
)
def test_inputs_that_do_not_fit_say_what_was_expected(tmp_path, arrays, message):
    np.savez(tmp_path / "in.npz", **arrays)
    with pytest.raises(UsageError, match=message):
        check_feed(net(ADD), Feeds.read(tmp_path / "in.npz").sets[0])


def test_unreadable_input_data_is_misuse(tmp_path):
    (tmp_path / "bad.npz").write_text("<html>")
    for path in (tmp_path / "bad.npz", tmp_path / "missing.npz", tmp_path):
        with pytest.raises(UsageError, match=path.name):
            Feeds.read(path)


def test_test_data_sets_are_feeds_of_their_own_and_positions_are_checked(tmp_path):
    for index in range(2):
        folder = tmp_path / f"test_data_set_{index}"
        folder.mkdir()
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(X + index).SerializeToString())
    feeds = Feeds.read(tmp_path).sets
    assert [feed.name for feed in feeds] == ["test_data_set_0", "test_data_set_1"]
    assert feeds[1].inputs["#0"][0, 0] == 2
    with pytest.raises(UsageError, match="input 2 does not exist; the model has 2"):
        check_feed(net(ADD), Feed("mine", {"#2": X}))


def test_arrays_lists_and_tensors_are_read_as_the_inputs_are_declared():
    feeds = Feeds.of([{"x": X.tolist(), "n": N}, {"x": numpy_helper.from_array(X), "n": [1, 1]}])

    assert [feed.name for feed in feeds.sets] == ["input_data 0", "input_data 1"]
    for feed in feeds.sets:
        checked = check_feed(net(ADD), feed)
        assert (checked.inputs["x"].dtype, checked.inputs["n"].dtype) == (np.float32, np.int64)
        assert np.array_equal(checked.inputs["x"], X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"x": X.astype(np.float64), "n": N},
            r"input_data: input 'x' is float64\[2, 3\], expected float\[2, 3\]",
        ),
        (
            {"x": [[1.0], [1.0, 2.0]], "n": N},
            "input_data: input 'x' is a list, which NumPy cannot read as an array",
        ),
        ({"y": X}, "no value for input 'x'"),
    ],
)
def test_arrays_that_do_not_fit_say_what_was_expected(given, message):
    with pytest.raises(UsageError, match=message):
        check_feed(net(ADD), Feeds.of(given).sets[0])


@pytest.mark.parametrize(
    ("given", "message"), [([], "list and has no inputs"), (iter([X]), "list_iterator"), (["x"], "list")]
)
def test_input_data_is_a_dict_a_list_of_dicts_or_a_path(given, message):
    with pytest.raises(UsageError, match=message) as caught:
        Feeds.of(given)
    assert caught.value.code == "input-data"
