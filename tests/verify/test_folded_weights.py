"""A simplified model has the weights that it was made from, or these by a factor of each channel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate import files
from onnx_migrate.verify.folded_weights import other_folded_weights
from tests.verify.harness import net

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


def found(kind: str, edit: Callable[[np.ndarray], np.ndarray]) -> list[str]:
    weight = np.random.default_rng(0).standard_normal(KINDS[kind][1]).astype(np.float32)
    before, after = model(kind, weight), model(kind, edit(weight).astype(np.float32), "folded")
    return [text for _, text in other_folded_weights(files.load(before), files.load(after))]


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

    assert found(kind, scale) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scaled", [False, True])
def test_one_moved_element_is_none(kind: str, scaled: bool) -> None:
    def move(weight: np.ndarray) -> np.ndarray:
        weight = weight * (factors(weight.shape, 0) if scaled else np.float32(1))
        weight.flat[-2] += 0.01
        return weight

    (text,) = found(kind, move)
    assert "of 'folded', the weight of" in text


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
    onnxsim = pytest.importorskip("onnxsim")
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
    assert all("the bias 'b' differs in 4 of 4 elements" in text for _, text in differences)
