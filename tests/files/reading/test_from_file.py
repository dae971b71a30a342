from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from onnx_migrate.files.reading import parse as parse_module
from onnx_migrate.files.reading.from_file import from_file
from onnx_migrate.files.wire.payload_references import split
from onnx_migrate.model.weights import Weights
from tests.files.feature_models import model, plain, weight
from tests.files.refusals import refusal


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.onnx").code == "no-such-file"
    assert refusal(tmp_path / "none" / "none.onnx").code == "no-such-file"
    assert refusal(tmp_path).code == "is-directory"
    (tmp_path / "net.onnx").touch()
    assert "net.onnx" in refusal(tmp_path).hint
    assert refusal(tmp_path / "net.onnx").code == "empty"
    assert refusal(b"").code == "empty"
    assert refusal("nul\0").code == "cannot-read"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").code == "cannot-read"
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop").code == "cannot-read"


@pytest.mark.parametrize("size", [5000, 20 << 20])
@pytest.mark.parametrize("how", ["cut", "written"])
def test_a_model_that_is_changed_while_it_is_read_is_refused(
    how: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(model([weight("w", 1, size // 4)]).SerializeToString())
    untouched = split

    def changed(*args: Any) -> bytes:
        os.truncate(path, 4000) if how == "cut" else os.utime(path, ns=(1, 1))
        return untouched(*args)

    monkeypatch.setattr(parse_module, "split", changed)
    assert refusal(path).code == "source-changed"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    path.write_bytes(plain().SerializeToString())
    path.chmod(0)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    os.seteuid(65534)
    try:
        error = refusal(path)
    finally:
        os.seteuid(0)
    assert error.code == "cannot-read"
    assert "Permission denied" in str(error)


def test_payloads_of_a_file_are_entered_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.onnx"
    proto = model([weight("w")])
    path.write_bytes(proto.SerializeToString())
    weights = Weights(tmp_path, source=path)

    found = from_file(path, "a model", weights)

    (tensor,) = found.graph.initializer
    assert not tensor.HasField("raw_data")
    assert bytes(weights.payload(tensor).read()) == proto.graph.initializer[0].raw_data
