"""Models of a migration as files that another runtime reads: weights, random operators, user's inputs."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate import files
from onnx_migrate.isolate import Limits
from onnx_migrate.verify.elsewhere.models import prove_models
from tests.verify.harness import RELU, net

_LIMITS = Limits(30.0)


def loaded(graph, doc="", **tensors):
    model = net(graph, **tensors)
    model.doc_string = doc
    return files.load(model)


def test_models_in_memory_are_written_whole(faulty):
    text = "(float[N,300] x) => (float[N,300] y) { y = MatMul(x, w) }"
    w = np.random.default_rng(0).standard_normal((300, 300))
    before, after = loaded(text, w=w), loaded(text, w=w * 1.01)
    assert prove_models([faulty], before, before.copy(), limits=_LIMITS, isolated=False)[0].outcome == "right"
    assert prove_models([faulty], before, after, limits=_LIMITS, isolated=False)[0].outcome == "worse"


def test_weights_in_files_of_their_own(faulty, tmp_path):
    model = net("(float[N,4] x) => (float[N,4] y) { y = Add(x, w) }", w=[1.0, 2, 3, 4])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    before = files.load(tmp_path / "m.onnx")
    assert prove_models([faulty], before, before, limits=_LIMITS, isolated=False)[0].outcome == "right"


def test_random_operators_are_fixed(faulty):
    text = "(float[N,4] x) => (float[N,4] y) { r = RandomNormalLike(x) y = Add(x, r) }"
    (proof,) = prove_models([faulty], loaded(text), loaded(text), limits=_LIMITS, isolated=False)
    assert proof.outcome == "right"
    assert proof.notes == ("run with fixed numbers in place of random ones",)


def test_inputs_of_the_user(faulty, tmp_path):
    np.savez(tmp_path / "in.npz", x=np.full((5, 4), 0.25, np.float32))
    before, after = loaded(RELU), loaded(RELU, "OFF=1")
    (proof,) = prove_models(
        [faulty], before, after, input_data=tmp_path / "in.npz", limits=_LIMITS, isolated=False
    )
    assert proof.result.comparisons[0].shape_before == (5, 4)


def test_numbers_that_were_changed_on_purpose(faulty):
    other = RELU.replace("Relu", "Neg")
    (proof,) = prove_models(
        [faulty], loaded(RELU), loaded(other), intended=loaded(other), limits=_LIMITS, isolated=False
    )
    assert proof.outcome == "mended"
