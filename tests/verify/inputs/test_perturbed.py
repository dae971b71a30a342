"""Weights are moved by one unit in the last place, wherever they are stored; scalars and integers are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.inputs import perturbed
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp, with_weights_moved
from tests.verify.harness import net, runnable

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
