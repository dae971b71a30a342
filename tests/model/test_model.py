"""A copy of a model has a structure of its own and shares the payloads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_migrate.files import load
from onnx_migrate.model.model import Model, Segment
from tests.harness import model

TEXT = '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }'


def test_a_copy_is_edited_apart_and_reads_the_same_weights() -> None:
    big = np.arange(5000, dtype=np.float32)
    source = model(TEXT)
    source.graph.initializer.append(numpy_helper.from_array(big, "big"))
    original = load(source)

    copy = original.copy()
    copy.proto.graph.node[0].op_type = "Neg"
    copy.weights.memory.clear()

    assert original.proto.graph.node[0].op_type == "Relu"
    assert not original.proto.graph.initializer[0].raw_data
    np.testing.assert_array_equal(original.weights.array(original.proto.graph.initializer[0]), big)
    np.testing.assert_array_equal(original.copy().weights.array(copy.proto.graph.initializer[0]), big)


def test_name_origin_and_what_must_stay_alive_are_kept() -> None:
    marker = object()
    copy = Model(model(TEXT), name="m.onnx", keepalive=marker, origin=("m.onnx", "m.data")).copy()

    assert (copy.name, copy.keepalive, copy.origin) == ("m.onnx", marker, ("m.onnx", "m.data"))


def test_the_size_of_the_files_counts_external_data(tmp_path: Path) -> None:
    source = model(TEXT)
    source.graph.initializer.append(numpy_helper.from_array(np.arange(5000, dtype=np.float32), "big"))
    onnx.save(source, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)

    loaded = load(tmp_path / "m.onnx")

    assert loaded.file_bytes == sum((tmp_path / name).stat().st_size for name in ("m.onnx", "w.bin"))
    assert load(model(TEXT)).file_bytes is None
    (tmp_path / "w.bin").unlink()
    assert loaded.file_bytes is None


def test_a_model_that_stands_in_several_places_is_changed_once() -> None:
    changed: list[str] = []

    def change(model: str) -> list[str]:
        changed.append(model)
        return [model]

    given = Segment("a", "b", "b", exact=True)
    found = given.map(change)

    assert list(given.models()) == ["a", "b", "b"]
    assert changed == ["a", "b"]
    assert found == Segment(["a"], ["b"], ["b"], exact=True)
    assert found.result is found.unsimplified
