"""Proofs of results against one original: numbers, claims of bit-identity, and dims made dynamic."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate import files
from onnx_migrate.errors import CannotMigrate, VerificationFailed
from onnx_migrate.isolate import Limits
from onnx_migrate.verify.prover import Prover

ADD = "(float[1,4] x) => (float[1,4] y) <float b = {BIAS}> { y = Add(x, b) }"
ROUNDED = "1.00000011920929"
"""One unit in the last place more than 1."""


def load(text):
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g ' + text)
    return files.load(model)


def prove(original, result, exact=None, **options):
    settings = {
        "input_data": None,
        "rtol": None,
        "atol": None,
        "seed": 0,
        "limits": Limits(),
        "isolated": False,
    }
    with Prover(original, **(settings | options)) as prover:
        return prover.prove(result, exact)


def test_a_claim_of_bit_identity_is_held():
    original, rounded = load(ADD.replace("BIAS", "1.0")), load(ADD.replace("BIAS", ROUNDED))
    assert prove(original, rounded).verdict.exact is None
    assert prove(original, rounded, original).verdict.exact is True
    for result in (original, rounded):
        with pytest.raises(VerificationFailed, match="bit-identity was claimed, but 'y'"):
            prove(original, result, rounded)
    with pytest.raises(VerificationFailed):
        prove(original, rounded, atol=0.0)


def test_a_frozen_dim_is_refused_by_name():
    text = "(float[N,4] x) => (float[A,4] y) <int64[2] s = {1, 4}> { [keep] y = Reshape(x, s) }"
    with pytest.raises(CannotMigrate, match="keep") as caught:
        prove(load(text.replace("N", "1").replace("A", "1")), load(text))
    assert caught.value.code == "frozen-dim"
    free = load(text.replace("{1, 4}", "{-1, 4}"))
    proof = prove(load(text.replace("N", "1").replace("A", "1")), free, free)
    assert proof.dynamic is not None
    assert proof.dynamic.holds


def test_weights_in_memory_are_looked_behind_too():
    """A Relu that gives only zeros hides the difference; the values before it are compared."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((64, 64)).astype(np.float32)  # too large to stay in the structure
    text = "(float[1,64] x) => (float[1,64] y) { m = MatMul(x, w) d = Sub(m, far) r = Relu(d) y = Add(r, x) }"
    models = []
    for array in (weights, weights + 1):
        model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g ' + text)
        for name, value in {"w": array, "far": np.full(64, 1e5, np.float32)}.items():
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
        models.append(files.load(model))
        assert models[-1].weights.memory
    assert prove(models[0], models[0], models[0]).verdict.notes == ()
    with pytest.raises(VerificationFailed, match="bit-identity was claimed"):
        prove(models[0], models[1], models[1])
