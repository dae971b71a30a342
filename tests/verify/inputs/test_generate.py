"""Random inputs: types, distributions, what is not generated, and inputs and weights moved by a rounding error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.errors import UsageError
from onnx_migrate.verify import Runnable
from onnx_migrate.verify.inputs import generate, perturbed
from onnx_migrate.verify.inputs.constraints.ranges import Range
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp, with_weights_moved
from tests.verify.harness import net, random_inputs, runnable


def generated(graph, distribution="normal", seed=0):
    return random_inputs(graph, seed=seed).feed(distribution)


def test_floats_are_signed_and_repeatable():
    text = "(float[64] x) => (float[64] y) { y = Relu (x) }"
    normal, wide = generated(text)["x"], generated(text, "wide")["x"]
    assert normal.dtype == np.float32
    assert (normal < 0).any()
    assert (normal > 0).any()
    assert np.abs(wide).max() > 6
    assert (wide == 0).any()
    assert np.array_equal(normal, generated(text)["x"])


@pytest.mark.parametrize("kind", ["bool", "string", "float16", "double", "uint8", "int8"])
def test_every_type_can_be_generated(kind):
    feed = generated(f"({kind}[5] x) => ({kind}[5] y) {{ y = Identity (x) }}")
    assert feed["x"].shape == (5,)


def test_initializers_are_not_fed():
    graph = "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }"
    assert set(generated(graph)) == {"x"}


@pytest.mark.parametrize(("size", "count"), [(100000, 1), (1000, 200)], ids=["one", "many together"])
def test_what_does_not_fit_memory_is_not_generated(size, count):
    inputs = ", ".join(f"float[{size},{size}] x{i}" for i in range(count))
    assert generated(f"({inputs}) => (float[{size},{size}] y) {{ y = Relu(x0) }}") is None


def test_each_distribution_has_its_range():
    text = "(float[4096] x) => (float[4096] y) { y = Relu (x) }"
    x = {name: generated(text, name)["x"] for name in ("normal", "wide", "uniform", "pixels", "small")}
    assert 0.9 < x["normal"].std() < 1.1
    assert 9 < x["wide"].std() < 11
    assert 0 <= x["uniform"].min() < x["uniform"].max() <= 1
    assert 200 < x["pixels"].max() <= 255
    assert 0.009 < x["small"].std() < 0.011


def test_the_seed_and_the_distribution_choose_the_numbers():
    text = "(float[64] x) => (float[64] y) { y = Relu (x) }"
    assert not np.array_equal(generated(text)["x"], generated(text, seed=1)["x"])
    # The numbers of seed 0 stay the same from release to release, so that reports can be compared.
    assert generated(text)["x"][:3].tolist() == pytest.approx([0.78237772, -0.13634737, 1.70529604])


def test_as_many_rows_of_a_table_are_read_as_can_be():
    text = "(int64[2,6] ids) => (float[2,6,1] y) <float[20,1] w = {ROWS}> { y = Gather (w, ids) }"
    text = text.replace("ROWS", ", ".join(map(str, range(20))))
    first, second = generated(text)["ids"], generated(text, "wide")["ids"]
    assert len(np.unique(first)) == 12, "none twice while there are others"
    assert len(np.unique([first, second])) == 20, "the next input goes on where this one ended"
    assert not np.array_equal(np.sort(first, axis=None), first.ravel()), "in random order"
    few = generated(text.replace("2,6", "9,9"))["ids"]
    assert set(np.unique(few, return_counts=True)[1]) == {4, 5}, "then each as often as others"


def test_an_attention_mask_has_ones_and_zeros_and_no_empty_row():
    text = "(int64[64,4] attention_mask) => (float[64,4] y) { c = Cast<to=1>(attention_mask) y = Sub(c, c) }"
    mask = generated(text)["attention_mask"]
    assert set(np.unique(mask)) == {0, 1}
    assert (mask[:, 0] == 1).all()


def test_a_sequence_has_three_tensors_and_a_map_is_refused():
    assert len(generated("(seq(float[4]) s) => (float[N] y) { y = ConcatFromSequence<axis=0>(s) }")["s"]) == 3
    with pytest.raises(UsageError, match="'m' is neither a tensor nor a sequence"):
        generated("(map(int64, float) m) => (float[N] y) { y = ai.onnx.ml.CastMap(m) }")


def test_integers_of_which_none_is_accepted_are_generated_all_the_same(monkeypatch):
    monkeypatch.setattr(generate, "input_ranges", lambda model, shapes: {"i": Range(0, -1)})
    assert generated("(int64[2] i) => (int64[2] y) { y = Neg(i) }")["i"].shape == (2,)


TEXT = """(float[N,4] x) => (float[N,4] y) { a = Mul(x, w) k = Constant<value = float[2] {1., 2.}>() b = Add(a, s)
  r = Reshape(b, d) y = Identity(r) }"""
WEIGHTS = {"w": [1.0, 0.0, -3.0, 1e-3], "s": [5.0], "d": np.array([0, 4])}


def arrays(model: Runnable) -> dict[str, np.ndarray]:
    graph = model.proto().graph
    constants = {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    return {
        name: numpy_helper.to_array(model.inlined(tensor))
        for name, tensor in ({t.name: t for t in graph.initializer} | constants).items()
    }


def test_every_element_but_zeros_is_the_next_number_and_scalars_and_integers_stay() -> None:
    before = runnable(TEXT, **WEIGHTS)
    one, moved = arrays(before), arrays(with_weights_moved(before, 0))

    for name in ("w", "k"):
        apart = np.abs(moved[name] - one[name])
        assert np.array_equal(apart > 0, one[name] != 0)
        assert np.all(apart <= np.spacing(np.abs(one[name])))
    assert np.array_equal(moved["s"], one["s"])
    assert np.array_equal(moved["d"], one["d"])


def test_external_data_are_read_as_far_as_memory_allows(tmp_path: Path, monkeypatch) -> None:
    model = net(TEXT, **WEIGHTS)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0, location="m.data")
    before = Runnable(tmp_path / "m.onnx")

    assert not np.array_equal(arrays(with_weights_moved(before, 0))["w"], arrays(before)["w"])
    monkeypatch.setattr(perturbed, "_MEMORY", 8)
    kept = arrays(with_weights_moved(before, 0))
    assert np.array_equal(kept["w"], arrays(before)["w"])
    assert not np.array_equal(kept["k"], arrays(before)["k"]), "the smallest come first"


def test_inputs_are_perturbed_by_one_ulp_except_zeros_and_integers():
    feed = {"x": np.float32([1, -2, 0, 8]), "i": np.array([1, 2])}
    moved = perturbed_by_ulp(feed, 0)
    assert np.array_equal(np.abs(moved["x"] - feed["x"]) > 0, [True, True, False, True])
    next_up = np.nextafter(feed["x"], np.float32(np.inf))
    next_down = np.nextafter(feed["x"], np.float32(-np.inf))
    nonzero = [0, 1, 3]
    assert all(moved["x"][i] in (next_up[i], next_down[i]) for i in nonzero)
    assert np.array_equal(moved["i"], feed["i"])
    assert np.array_equal(moved["x"], perturbed_by_ulp(feed, 0)["x"]), "repeatable"
