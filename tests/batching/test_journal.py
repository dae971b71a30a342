"""What a result is recorded to depend on, and what becomes of the file when runs are killed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate import default_pipeline, files
from onnx_migrate.batching.journal import NAME, Journal, content, key, whole, written
from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.standard.targets import resolve
from tests.support.small_model import small


def test_records_survive_a_killed_run_and_are_sorted_at_the_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.rewrite()
    for output in ("b.onnx", "a.onnx"):
        journal.add({"output": output, "content": {}})
    with (tmp_path / NAME).open("a", encoding="utf-8") as file:
        file.write('{"output": "c.on')
    (tmp_path / f".{NAME}.4711-0.tmp").touch()

    again = Journal(tmp_path)
    again.read()
    again.rewrite()
    again.forget("b.onnx")
    again.add({"output": "0.onnx"})
    again.rewrite()

    lines = (tmp_path / NAME).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["output"] for line in lines] == ["0.onnx", "a.onnx"]
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_the_key_is_of_options_versions_and_named_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("in.npz", x=np.zeros(3))
    first = key({"opset": 17, "timeout": 5, "input_data": "in.npz"}, external=False)

    assert first == key(
        {"opset": 17, "timeout": 9, "memory_limit": 1, "input_data": "in.npz"}, external=False
    )
    assert first != key({"opset": 18, "input_data": "in.npz"}, external=False)
    assert first != key({"opset": 17, "input_data": "in.npz"}, external=True)
    np.savez("in.npz", x=np.ones(3))
    assert first != key({"opset": 17, "input_data": "in.npz"}, external=False)


def test_the_key_of_arrays_is_of_their_content() -> None:
    def of(*data: object) -> object:
        return key({"input_data": data[0] if len(data) == 1 else list(data)}, external=False)

    ones = {"x": np.ones(3, np.float32)}
    assert of(ones) == of({"x": np.ones(3, np.float32)})
    others = [
        {"x": np.zeros(3, np.float32)},
        {"x": np.ones((3, 1), np.float32)},
        {"y": ones["x"]},
        {"x": ["a"]},
        {"x": ["b"]},
    ]
    assert len({json.dumps(of(item)) for item in (ones, *others)}) == 6
    assert of(ones, ones) != of(ones)


def test_passes_by_path_and_of_this_package_have_a_key_and_objects_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pass_for_key.py").write_text("def act(model): ...", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    passes = ["pass_for_key:act", make_pass("runtime_limits", targets=resolve(["onnxruntime==1.14"]))]

    before = key({"passes": passes}, external=False)
    (tmp_path / "pass_for_key.py").write_text("def act(model): pass", encoding="utf-8")

    assert before is not None
    assert before != key({"passes": passes}, external=False)
    assert key({"passes": [print]}, external=False) is None
    assert key({"pipeline": default_pipeline()}, external=False) is None


def test_content_is_of_the_model_and_its_weights(tmp_path: Path) -> None:
    proto = small()
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((64, 64), np.float32), "big"))
    (tmp_path / "data").mkdir()
    path = tmp_path / "m.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="data/w.bin", size_threshold=1024)
    before = content(files.load(path))

    weights = bytearray((tmp_path / "data" / "w.bin").read_bytes())
    weights[-1] ^= 1
    (tmp_path / "data" / "w.bin").write_bytes(weights)
    after = content(files.load(path))

    assert set(before) == {"m.onnx", "data/w.bin"}
    assert [name for name in before if before[name] != after[name]] == ["data/w.bin"]


def test_a_result_is_whole_only_as_it_was_written(tmp_path: Path) -> None:
    output = tmp_path / "out.onnx"
    output.write_bytes(b"model")
    known = written(str(output))

    assert whole(str(output), known)
    assert not whole(str(tmp_path / "gone.onnx"), {})
    (tmp_path / "out.onnx.data").write_bytes(b"weights")
    assert not whole(str(output), known)
