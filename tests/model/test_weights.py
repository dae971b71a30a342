"""References to payloads: found again as arrays, kept apart by copies, and never outside of the model's folder."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.model.payloads import BufferPayload
from onnx_migrate.model.weights import MEMORY, Weights, mark_external

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


def reference(location: str, offset: int = 0, length: int = 24) -> TensorProto:
    tensor = TensorProto(name="w", dims=[2, 3], data_type=TensorProto.FLOAT)
    mark_external(tensor, location, offset, length)
    return tensor


def test_a_kept_payload_is_the_tensor_again() -> None:
    weights, tensor = Weights(), helper.make_tensor("w", 1, [2, 3], VALUES.ravel())

    weights.keep(tensor, BufferPayload(memoryview(VALUES.tobytes()), 24))

    assert not tensor.float_data
    assert tensor.data_location == TensorProto.EXTERNAL
    np.testing.assert_array_equal(weights.array(tensor), VALUES)
    whole = weights.inlined(tensor)
    assert whole.raw_data == VALUES.tobytes()
    assert not whole.external_data
    np.testing.assert_array_equal(numpy_helper.to_array(whole), VALUES)


def test_what_a_copy_keeps_the_original_does_not_have() -> None:
    weights = Weights()
    copy, tensor = weights.copy(), helper.make_tensor("w", 1, [2, 3], VALUES.ravel())
    copy.keep(tensor, BufferPayload(memoryview(VALUES.tobytes()), 24))

    np.testing.assert_array_equal(copy.array(tensor), VALUES)
    with pytest.raises(LoadError, match=f"has the location '{MEMORY}0', which refers to no data"):
        weights.payload(tensor)


def test_a_file_of_the_folder_is_read_at_the_offset(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"12345678" + VALUES.tobytes())

    np.testing.assert_array_equal(Weights(tmp_path).array(reference("w.bin", 8)), VALUES)


@pytest.mark.parametrize(
    ("location", "offset", "length", "code", "message"),
    [
        ("../w.bin", 0, 24, "outside-folder", "is stored in '../w.bin', outside the model's folder"),
        ("none.bin", 0, 24, "missing-data", "is stored in 'none.bin', which cannot be read"),
        ("folder", 0, 24, "missing-data", "which is not a regular file"),
        ("w.bin", 8, 24, "missing-data", "needs bytes 8 to 32 of .*w.bin, which has 24"),
        ("w.bin", 0, 20, "bad-external-data", "has external data of 20 bytes, but its dims and type need 24"),
        (
            "w.bin",
            -1,
            24,
            "bad-external-data",
            "has external data whose offset is '-1', not a number of bytes",
        ),
        ("", 0, 24, "missing-data", "is external data without a location"),
    ],
)
def test_what_is_wrong_with_a_reference_is_said(
    location: str, offset: int, length: int, code: str, message: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (home / "folder").mkdir(parents=True)
    for folder in (tmp_path, home):
        (folder / "w.bin").write_bytes(VALUES.tobytes())

    with pytest.raises(LoadError, match=message) as caught:
        Weights(home).payload(reference(location, offset, length))

    assert caught.value.code == code


def test_a_file_swapped_for_one_outside_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, resolve = tmp_path / "home", os.path.realpath
    home.mkdir()
    for folder in (tmp_path, home):
        (folder / "w.bin").write_bytes(VALUES.tobytes())

    def swap(path: str) -> str:
        found = resolve(path)
        if os.path.basename(path) == "w.bin":
            (home / "w.bin").unlink()
            (home / "w.bin").symlink_to(tmp_path / "w.bin")
        return found

    monkeypatch.setattr(os.path, "realpath", swap)
    with pytest.raises(LoadError, match="replaced while it was opened"):
        Weights(home).payload(reference("w.bin"))


def test_what_changed_since_the_look_up_is_found(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(VALUES.tobytes())
    weights = Weights(tmp_path)
    weights.payload(reference("w.bin"))
    weights.require_unchanged()
    os.truncate(tmp_path / "w.bin", 20)

    with pytest.raises(LoadError, match="has changed since the model was read"):
        weights.require_unchanged()


def test_a_model_without_a_folder_has_absent_files() -> None:
    weights = Weights()

    assert weights.is_absent(reference("w.bin"))
    assert not weights.is_absent(reference(f"{MEMORY}0"))
    with pytest.raises(LoadError, match="was not given as a file"):
        weights.payload(reference("w.bin"))
