"""Weights are compared as data, without a run: other data, and what simplifiers fold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate import files
from onnx_migrate.model.payloads import FilePayload
from onnx_migrate.verify.weight_data import other_folded_weights, other_weights
from tests.support.skips import Elsewhere, import_or_skip
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


CONV = "(float[1,{channels},9,9] x) => (float[1,{out},h,w] y) {{ {operator} y = Relu(c) }}"
KINDS = {
    "Conv": (4, (6, 4, 3, 3), "c = Conv(x, w)"),
    "Conv of one point": (4, (6, 4, 1, 1), "c = Conv(x, w)"),
    "depthwise Conv": (6, (6, 1, 3, 3), "c = Conv<group=6>(x, w)"),
    "Conv of groups": (4, (6, 2, 3, 3), "c = Conv<group=2>(x, w)"),
    "ConvTranspose": (4, (4, 6, 3, 3), "c = ConvTranspose(x, w)"),
    "ConvTranspose of groups": (4, (4, 3, 3, 3), "c = ConvTranspose<group=2>(x, w)"),
}


def model(kind: str, weight: np.ndarray, name: str = "w") -> onnx.ModelProto:
    channels, _, operator = KINDS[kind]
    text = CONV.format(channels=channels, out=6, operator=operator.replace("w)", f"{name})"))
    return net(text, **{name: weight})


def unscaled(kind: str, edit: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    weight = np.random.default_rng(0).standard_normal(KINDS[kind][1]).astype(np.float32)
    before, after = model(kind, weight), model(kind, edit(weight).astype(np.float32), "folded")
    return list(other_folded_weights(files.load(before), files.load(after)))


def factors(shape: tuple[int, ...], axis: int) -> np.ndarray:
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    values = np.random.default_rng(axis).uniform(-2, 2, sizes)
    values.flat[0] = 0  # as of a channel that was pruned
    return values.astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)], ids=str)
def test_factors_of_channels_are_a_fold(kind: str, axes: tuple[int, ...]) -> None:
    def scale(weight: np.ndarray) -> np.ndarray:
        for axis in axes:
            weight = weight * factors(weight.shape, axis)
        return weight

    assert unscaled(kind, scale) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaled", [False, True])
def test_one_moved_element_is_none(kind: str, scaled: bool) -> None:
    def move(weight: np.ndarray) -> np.ndarray:
        weight = weight * (factors(weight.shape, 0) if scaled else np.float32(1))
        weight.flat[-2] += 0.01
        return weight

    (text,) = unscaled(kind, move)
    assert "of 'folded', the weight of" in text


@pytest.mark.parametrize(("units", "is_fold"), [(16, True), (600, False)])
def test_a_fold_rounds_by_few_units_in_the_last_place(units: int, is_fold: bool) -> None:
    """Every second element moves, so that no factor of a channel explains it."""

    def move(weight: np.ndarray) -> np.ndarray:
        moved = weight.astype(np.float64)
        moved.flat[::2] *= 1 + units * 2.0**-24
        return moved

    assert (unscaled("Conv", move) == []) is is_fold


def test_zeros_stay_zeros() -> None:
    def pruned(weight: np.ndarray) -> np.ndarray:
        weight[1, 2] = weight[3] = weight[0, 0, 0, 0] = 0
        return weight

    for late, wrong in ((0.0, 0), (0.1, 1)):
        weight = np.random.default_rng(0).standard_normal((6, 4, 3, 3)).astype(np.float32)
        after = pruned(weight) * factors(weight.shape, 0)
        after[3, 0, 1, 1] = late
        models = (model("Conv", pruned(weight)), model("Conv", after, "folded"))
        assert len(list(other_folded_weights(*map(files.load, models)))) == wrong


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_numbers_too_small_to_be_squared_are_scaled_like_others(axes: tuple[int, ...]) -> None:
    weight = np.random.default_rng(0).standard_normal((6, 4, 1, 1)).astype(np.float32)
    weight[1] *= np.float32(1e-25)
    weight[:, 2] *= np.float32(1e-22)
    weight[2, 1] = np.float32(1e-40)
    after = weight
    for axis in axes:
        after = after * (np.abs(factors(weight.shape, axis)) + np.float32(0.5))
    models = (model("Conv of one point", weight), model("Conv of one point", after, "folded"))

    assert not list(other_folded_weights(*map(files.load, models)))


def test_a_node_of_other_inputs_or_attributes_is_another_node() -> None:
    one = model("Conv", np.ones((6, 4, 3, 3), np.float32))
    wide = model("Conv", np.arange(6 * 4 * 9, dtype=np.float32).reshape(6, 4, 3, 3), "folded")
    assert list(other_folded_weights(files.load(one), files.load(wide)))
    wide.graph.node[0].attribute.append(onnx.helper.make_attribute("pads", [1, 1, 1, 1]))
    assert not list(other_folded_weights(files.load(one), files.load(wide)))
    del wide.graph.node[0].attribute[:]
    wide.graph.node.insert(0, onnx.helper.make_node("Neg", ["x"], ["n"]))
    wide.graph.node[1].input[0] = "n"
    assert not list(other_folded_weights(files.load(one), files.load(wide)))


def test_what_onnxsim_folds_is_found_to_be_a_fold() -> None:
    onnxsim = import_or_skip("onnxsim", Elsewhere.INSTALLED)
    rng = np.random.default_rng(1)
    text = """(float[1,4,9,9] x) => (float[1,6,11,11] y) {
      p = Mul(x, k) c = Conv(p, w) b = BatchNormalization(c, gain, shift, mean, variance) r = Relu(b)
      d = Conv<group=2>(r, v) e = Mul(d, m) s = Sigmoid(e) t = ConvTranspose(s, u)
      z = BatchNormalization(t, gain, shift, mean, variance) y = Tanh(z) }"""
    source = net(
        text, w=rng.standard_normal((6, 4, 3, 3)), v=rng.standard_normal((6, 3, 1, 1)),
        u=rng.standard_normal((6, 6, 5, 5)), m=rng.standard_normal((1, 6, 1, 1)), k=rng.standard_normal((1, 4, 1, 1)),
        gain=rng.standard_normal(6), shift=rng.standard_normal(6), mean=rng.standard_normal(6),
        variance=rng.uniform(0.5, 2, 6),
    )  # fmt: skip
    simplified, _ = onnxsim.simplify(source)
    assert len(simplified.graph.node) < len(source.graph.node)
    before = files.load(source)

    assert not list(other_folded_weights(before, files.load(simplified)))

    for tensor in simplified.graph.initializer:
        if np.prod(tensor.dims) > 500:
            values = numpy_helper.to_array(tensor).copy()
            values.flat[5] += 0.3
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    assert list(other_folded_weights(before, files.load(simplified)))


@pytest.mark.parametrize(
    ("step", "factor", "reader", "count"),
    [(0.0, 1.0, "Relu", 0), (0.5, 1.0, "Relu", 1), (0.5, 2.0, "Relu", 0), (0.5, 1.0, "Tanh", 0)],
    ids=["the same", "moved", "folded with the weight", "folded with the node behind"],
)
def test_a_bias_of_the_same_node_is_the_same(step: float, factor: float, reader: str, count: int) -> None:
    text = "(float[1,4] x) => (float[1,4] y) {{ c = Gemm(x, w, b) y = {reader}(c) }}"
    weight, bias = np.arange(16.0).reshape(4, 4), np.arange(4.0)
    before = net(text.format(reader="Relu"), w=weight, b=bias)
    after = net(text.format(reader=reader), w=weight * factor, b=bias + step)

    differences = list(other_folded_weights(files.load(before), files.load(after)))

    assert len(differences) == count
    assert all("the bias 'b' differs in 4 of 4 elements" in text for text in differences)
