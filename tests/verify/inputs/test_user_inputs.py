"""The user's own inputs are read and checked: files, arrays, and whether they fit the model."""

from __future__ import annotations

import io
import os
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.verify.inputs import input_files
from onnx_migrate.verify.inputs.given import GivenInputs
from onnx_migrate.verify.inputs.input_files import read_npz, read_tensor, require_readable
from onnx_migrate.verify.inputs.user_inputs import Feed, Feeds, check_feed
from tests.verify.harness import net

ADD = "(float[2,3] x, int64[N] n) => (float[2,3] y) { c = Cast<to=1>(n) s = ReduceSum<keepdims=0>(c) y = Add (x, s) }"
X, N = np.ones((2, 3), np.float32), np.ones(4, np.int64)


def test_npz_and_folders_are_read(tmp_path):
    np.savez(tmp_path / "in.npz", x=X, n=N)
    (feed,) = GivenInputs(tmp_path / "in.npz").bind(net(ADD)).sets
    assert set(feed.inputs) == {"x", "n"}
    (tmp_path / "in.npz").unlink()
    for index, array in enumerate((X, N)):
        (tmp_path / f"input_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    (tmp_path / "output_0.pb").write_bytes(numpy_helper.from_array(X).SerializeToString())
    (feed,) = GivenInputs(tmp_path).bind(net(ADD)).sets
    assert np.array_equal(feed.inputs["n"], N)
    assert set(feed.expected) == {"y"}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "no value for input 'n'\nHint: expected inputs: x: float"),
        ({"x": X, "n": N, "z": N}, "the model has no input 'z'"),
        ({"x": X.T, "n": N}, r"input 'x' is float32\[3, 2\], expected float\[2, 3\]"),
        ({"x": X, "n": N.astype(np.int32)}, r"input 'n' is int32\[4\], expected int64\[N\]"),
    ],
)
def test_inputs_that_do_not_fit_say_what_was_expected(tmp_path, arrays, message):
    np.savez(tmp_path / "in.npz", **arrays)
    with pytest.raises(UsageError, match=message):
        GivenInputs(tmp_path / "in.npz").bind(net(ADD))


def test_unreadable_input_data_is_misuse(tmp_path):
    (tmp_path / "bad.npz").write_text("<html>")
    for path in (tmp_path / "bad.npz", tmp_path / "missing.npz", tmp_path):
        with pytest.raises(UsageError, match=path.name):
            GivenInputs(path).bind(net(ADD))


def test_test_data_sets_are_feeds_of_their_own_and_positions_are_checked(tmp_path):
    for index in range(2):
        folder = tmp_path / f"test_data_set_{index}"
        folder.mkdir()
        for place, array in enumerate((X + index, N)):
            data = numpy_helper.from_array(array).SerializeToString()
            (folder / f"input_{place}.pb").write_bytes(data)
    feeds = GivenInputs(tmp_path).bind(net(ADD)).sets
    assert [feed.name for feed in feeds] == ["test_data_set_0", "test_data_set_1"]
    assert feeds[1].inputs["x"][0, 0] == 2
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
            {"x": X.astype(np.float64).T, "n": N},
            r"input_data: input 'x' is float64\[3, 2\], expected float\[2, 3\]",
        ),
        ({"x": X.astype(int), "n": N}, r"input 'x' is int64\[2, 3\], expected float\[2, 3\]"),
        ({"x": X.astype(np.float64) * 1e39, "n": N}, "input 'x' has 1e.39, which float32 cannot hold"),
        ({"x": X, "n": [1, 1.5]}, r"input 'n' is float64\[2\], expected int64\[N\]"),
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
    ("given", "message"),
    [
        ([], "list and has no inputs"),
        (iter([X]), "yields a ndarray, and no dict"),
        (["x"], "x: cannot be read"),
        (3, "of the type int"),
        (iter([]), "yields no inputs"),
    ],
)
def test_input_data_of_another_form_is_misuse(given, message):
    with pytest.raises(UsageError, match=message) as caught:
        GivenInputs(given).bind(net(ADD))
    assert caught.value.code == "input-data"


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def claiming(shape: str, descr: str = "<f4", data: bytes = b"") -> bytes:
    return npy(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n", data)


def zipped(member: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", member)
    return out.getvalue()


def pickled() -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([print], dtype=object), allow_pickle=True)
    return out.getvalue()


NPZ = {
    "4 TB": (zipped(claiming("(1000000000000,)")), "'x' claims 4,000,000,000,000 bytes, and 0 follow"),
    "more than 64 bits": (zipped(claiming("(10000000000000, 10000000000000)")), "claims .* bytes"),
    "negative dims": (zipped(claiming("(-1, 4)", data=bytes(16))), r"has the dims \[-1, 4\]"),
    "dims that are no numbers": (zipped(claiming("('a',)")), "no header"),
    "less than there is": (zipped(claiming("(1,)", data=bytes(16))), "claims 4 bytes, and 16 follow"),
    "objects": (zipped(pickled()), "Python objects"),
    "a header of code": (zipped(npy("__import__('os').abort()\n")), "no header"),
    "a header that is cut": (zipped(b"\x93NUMPY\x01\x00\xff\xff{"), "no header"),
    "an .npy of 4 TB": (claiming("(1000000000000,)"), "no .npz"),
    "a pickle": (b"\x80\x04\x95", "no .npz"),
    "a cut archive": (zipped(claiming("(4,)", data=bytes(16)))[:-30], "cannot be read"),
    "nothing": (b"", "no .npz"),
}


@pytest.mark.parametrize("case", NPZ)
def test_an_npz_that_lies_is_refused(case: str, tmp_path: Path) -> None:
    data, message = NPZ[case]
    (tmp_path / "in.npz").write_bytes(data)

    start = time.monotonic()
    with pytest.raises(UsageError, match=message) as caught:
        read_npz(tmp_path / "in.npz")
    assert caught.value.code == "input-data"
    assert "\n" not in caught.value.with_hint
    assert time.monotonic() - start < 2


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(tmp_path / "in.npz", x=np.zeros(1 << 20, np.float32), y=np.zeros(9, np.float32))
    assert (tmp_path / "in.npz").stat().st_size < 1 << 16
    assert len(read_npz(tmp_path / "in.npz")["x"]) == 1 << 20

    monkeypatch.setattr(input_files, "byte_limit", lambda: 1 << 22)
    monkeypatch.setattr(np, "load", None)
    with pytest.raises(UsageError, match=r"its arrays take 4,194,.* bytes, and 4,194,304 are read at most"):
        read_npz(tmp_path / "in.npz")


def test_every_kind_of_array_that_savez_writes_is_read(tmp_path: Path) -> None:
    arrays = {
        "scalar": np.float32(3),
        "empty": np.zeros((0, 4), np.int64),
        "strings": np.array(["ab", "ß"]),
        "fortran": np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)),
        "a/b": np.ones(3, np.complex64),
    }
    np.savez(tmp_path / "in.npz", **arrays)
    found = read_npz(tmp_path / "in.npz")

    assert set(found) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


TENSORS = {
    "10^15 elements": TensorProto(data_type=1, dims=[10**15], raw_data=bytes(8)),
    "10^15 packed ones": TensorProto(data_type=TensorProto.UINT4, dims=[10**15], raw_data=bytes(8)),
    "10^15 in a list": TensorProto(data_type=1, dims=[10**15], float_data=[1, 2]),
    "10^15 packed ones in a list": TensorProto(data_type=TensorProto.INT4, dims=[10**15], int32_data=[1, 2]),
    "10^15 strings": TensorProto(data_type=8, dims=[10**15], string_data=[b"a"]),
    "10^15 of nothing": TensorProto(data_type=1, dims=[10**15]),
    "negative dims": TensorProto(data_type=1, dims=[-1], raw_data=bytes(4)),
    "no type": TensorProto(dims=[1], raw_data=bytes(4)),
    "a file elsewhere": TensorProto(data_type=1, dims=[1], data_location=TensorProto.EXTERNAL),
}
TENSORS["a file elsewhere"].external_data.add(key="location", value="/etc/passwd")


@pytest.mark.parametrize("case", TENSORS)
def test_a_tensor_that_lies_is_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "input_0.pb").write_bytes(TENSORS[case].SerializeToString())

    with pytest.raises(UsageError, match=r"input_0\.pb: not a TensorProto: ."):
        GivenInputs(tmp_path).bind(net("(float[N] x) => (float[N] y) { y = Relu(x) }"))


@pytest.mark.parametrize(
    "array",
    [np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 3)), np.array(["a", "b"], object), np.bool_(True),
     np.arange(5, dtype=np.float16), np.ones(3, np.complex128), np.arange(7, dtype=np.uint64)],
)  # fmt: skip
def test_a_tensor_is_read(array: np.ndarray, tmp_path: Path) -> None:
    array = np.asarray(array)
    (tmp_path / "t.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())

    np.testing.assert_array_equal(read_tensor(tmp_path / "t.pb"), array)


def test_pipes_and_files_without_end_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.npz")
    (tmp_path / "pb").mkdir()
    os.mkfifo(tmp_path / "pb" / "input_0.pb")
    (tmp_path / "sparse").mkdir()
    (tmp_path / "sparse" / "input_0.pb").touch()
    os.truncate(tmp_path / "sparse" / "input_0.pb", 1 << 40)

    for path, message in (
        (tmp_path / "in.npz", "it is a pipe"),
        (tmp_path / "pb", "it is a pipe"),
        (Path("/dev/zero"), "it is a device"),
        (tmp_path / "sparse", "the inputs take 1,099,511,627,776 bytes"),
    ):
        with pytest.raises(UsageError, match=message):
            GivenInputs(path).bind(net("(float[N] x) => (float[N] y) { y = Relu(x) }"))
    with pytest.raises(UsageError, match="are read at most"):
        require_readable([tmp_path / "sparse" / "input_0.pb"])
