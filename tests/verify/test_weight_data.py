"""Weights of the same name are compared as data, and read only where they are stored in different places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate import files
from onnx_migrate.model.payloads import FilePayload
from onnx_migrate.verify.weight_data import other_weights
from tests.verify.harness import net

TEXT = "(float[1,64] x) => (float[1,64] y) { m = MatMul(x, w) y = Add(m, b) }"
LARGE = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
SMALL = np.arange(64, dtype=np.float32)


def found(one: onnx.ModelProto, other: onnx.ModelProto) -> dict[str, str]:
    return dict(other_weights(files.load(one), files.load(other)))


def moved(array: np.ndarray, step: float = 0.5) -> np.ndarray:
    copy = array.copy()
    copy.flat[7] += step
    return copy


@pytest.mark.parametrize("name", ["w", "b"], ids=["in a payload", "in the structure"])
def test_one_moved_element_is_found_with_its_name(name: str) -> None:
    weights = {"w": LARGE, "b": SMALL}
    difference = found(net(TEXT, **weights), net(TEXT, **{**weights, name: moved(weights[name])}))

    assert list(difference) == [name]
    assert f"{name!r} differs in 1 of {weights[name].size} elements, by up to 0.5" in difference[name]


def test_the_form_in_which_data_are_stored_makes_no_difference() -> None:
    one, other, third = (net(TEXT, w=LARGE, b=SMALL) for _ in range(3))
    for tensor in other.graph.initializer:
        values = numpy_helper.to_array(tensor).ravel()
        tensor.ClearField("raw_data")
        tensor.float_data.extend(values)
    bias = third.graph.initializer.pop(1)
    third.graph.node.insert(0, onnx.helper.make_node("Constant", [], ["b"], value=bias))

    assert found(one, other) == found(one, third) == found(third, other) == {}
    bias.CopyFrom(numpy_helper.from_array(moved(SMALL), "b"))
    third.graph.node[0].attribute[0].t.CopyFrom(bias)
    assert list(found(one, third)) == ["b"]


def test_other_types_dims_and_names_and_lengths_are_no_weights_of_the_same_name() -> None:
    one = net(TEXT, w=LARGE, b=SMALL)
    wider, longer, unread = (net(TEXT, w=LARGE, b=SMALL) for _ in range(3))
    wider.graph.initializer[1].CopyFrom(numpy_helper.from_array(moved(SMALL).astype(np.float64), "b"))
    longer.graph.initializer[1].CopyFrom(numpy_helper.from_array(moved(SMALL)[None], "b"))
    for model, value in ((one, 1.0), (unread, 2.0)):
        model.graph.initializer.append(numpy_helper.from_array(np.full(4, value, np.float32), "unread"))
    shape = "(float[N,4] x) => (float[2,2] y) { y = Reshape(x, s) }"

    assert found(one, wider) == found(one, longer) == found(one, unread) == {}
    assert found(net(shape, s=np.array([2, 2])), net(shape, s=np.array([2, -1]))) == {}


def test_a_name_in_several_bodies_is_left_out() -> None:
    text = """(bool c, float[4] x) => (float[4] y) {
        y = If (c) <then_branch = t () => (float[4] a) <float k = {1}> { a = Add(x, k) },
                    else_branch = e () => (float[4] b) <float k = {2}> { b = Add(x, k) }> }"""
    one, other = net(text), net(text)
    branches = [attribute.g for attribute in other.graph.node[0].attribute]
    for branch, value in zip(branches, (2, 1), strict=True):
        branch.initializer[0].CopyFrom(numpy_helper.from_array(np.float32(value), "k"))

    assert found(one, other) == {}
    for model in (one, other):
        model.graph.node[0].attribute[1].g.node[0].input[1] = "l"
        model.graph.node[0].attribute[1].g.initializer[0].name = "l"
    assert list(found(one, other)) == ["k", "l"]


def test_data_in_the_same_place_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    onnx.save(net(TEXT, w=LARGE, b=SMALL), tmp_path / "a.onnx")
    (tmp_path / "b.onnx").write_bytes((tmp_path / "a.onnx").read_bytes())
    one = files.load(tmp_path / "a.onnx")
    reads = []
    read = FilePayload.read
    monkeypatch.setattr(FilePayload, "read", lambda self: reads.append(self.path.name) or read(self))

    assert not list(other_weights(one, one.copy()))
    assert not list(other_weights(files.load(tmp_path / "a.onnx"), one))
    assert reads == []
    assert not list(other_weights(one, files.load(tmp_path / "b.onnx")))
    assert set(reads) == {"a.onnx", "b.onnx"}
