"""Arrays are written to .npz files under any names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from onnx_migrate.verify.npz import write_npz


@pytest.mark.parametrize("name", ["x", "file", "allow_pickle", "args", "a/b:0", "", "ä"])
def test_a_name_is_no_keyword(name: str, tmp_path: Path) -> None:
    values = {name: np.arange(6.0).reshape(2, 3), "text": np.array(["a", "bc"], object), "list": [1]}
    write_npz(tmp_path / "feed.npz", values)

    with np.load(tmp_path / "feed.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {name, "text"}
        assert np.array_equal(arrays[name], values[name])
        assert arrays["text"].tolist() == ["a", "bc"]


def test_equal_arrays_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, {"x": np.ones(3)})

    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
