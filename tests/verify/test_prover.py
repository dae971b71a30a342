"""Results of a migration against their original: numbers, claims of bit-identity, and dims made dynamic."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from onnx_migrate import files
from onnx_migrate.errors import CannotMigrate, LoadError, VerificationFailed
from onnx_migrate.isolate import Limits
from onnx_migrate.verify import prover
from onnx_migrate.verify.prover import Prover
from tests.verify.harness import ULP, net


def add(bias):
    return files.load(net("(float[1,4] x) => (float[1,4] y) { y = Add(x, b) }", b=bias))


def load(text):
    return files.load(net(text))


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


def test_bit_identity_is_required_where_it_is_claimed():
    original, rounded = add(1.0), add(1.0 + ULP)
    assert prove(original, rounded).verdict.exact is None
    assert prove(original, rounded, original).verdict.exact is True
    for result in (original, rounded):
        with pytest.raises(VerificationFailed, match=r"other data: 'b' differs .* report this as a bug"):
            prove(original, result, rounded)
    with pytest.raises(VerificationFailed, match="--rtol and --atol allow larger differences") as caught:
        prove(original, rounded, atol=0.0)
    assert caught.value.verification.kind.value == "differs"
    assert re.search(r"; at \[0, \d\] .* became .*; elements: \d .* by \de-0\d to \de-0\d", str(caught.value))


def test_a_frozen_dim_is_refused_with_the_node():
    text = "(float[N,4] x) => (float[A,4] y) <int64[2] s = {1, 4}> { [keep] y = Reshape(x, s) }"
    with pytest.raises(CannotMigrate, match="keep") as caught:
        prove(load(text.replace("N", "1").replace("A", "1")), load(text))
    assert caught.value.code == "frozen-dim"
    assert "export the model with N dynamic" in caught.value.hint
    free = load(text.replace("{1, 4}", "{-1, 4}"))
    proof = prove(load(text.replace("N", "1").replace("A", "1")), free, free)
    assert proof.dynamic is not None
    assert proof.dynamic.holds


def test_inner_values_are_compared_for_weights_in_memory_too():
    """A Relu whose output is all zeros hides the difference; the values before it are compared."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((64, 64)).astype(np.float32)  # too large to stay in the structure
    text = "(float[1,64] x) => (float[1,64] y) { m = MatMul(x, w) d = Sub(m, far) r = Relu(d) y = Add(r, x) }"
    models = []
    for array, name in ((weights, "w"), (weights + 1, "v")):
        model = net(text.replace("w)", f"{name})"), **{name: array, "far": np.full(64, 1e5)})
        models.append(files.load(model))
        assert models[-1].weights.memory
    assert prove(models[0], models[0], models[0]).verdict.notes == ()
    with pytest.raises(VerificationFailed, match="without optimisation 'd' differs"):
        prove(models[0], models[1], models[1])


def test_a_weight_that_no_run_shows_is_found_where_bit_identity_is_claimed(monkeypatch):
    text = "(float[1,4] x) => (float[1,4] y) { p = Relu(x) d = Sub(p, far) m = Mul(d, w) r = Relu(m) y = Add(r, x) }"
    far, w = np.full(4, 1e5), np.ones(4)
    original, other = (files.load(net(text, far=far, w=array)) for array in (w, w + ULP))
    monkeypatch.setattr(
        "onnx_migrate.verify.prover.verify", lambda *_, **__: pytest.fail("the models were run")
    )

    with pytest.raises(
        VerificationFailed, match="a weight has other data: 'w' differs in 4 of 4 elements"
    ) as caught:
        prove(original, other, other)

    assert caught.value.verification.exact is False


def test_a_weight_that_no_run_shows_is_found_in_a_simplified_result(monkeypatch):
    text = "(float[1,4] x) => (float[1,4] y) { p = Relu(x) n = Neg(p) r = Relu(n) m = MatMul(r, w) y = Add(m, x) }"
    weights = np.arange(1.0, 17.0).reshape(4, 4)
    moved = weights.copy()
    moved[2, 1] += 1
    original, scaled, wrong = (files.load(net(text, w=array)) for array in (weights, weights * 2, moved))
    assert prove(original, scaled, original).verdict.kind == "verified"
    with pytest.raises(VerificationFailed, match=r"simplification changed a weight: .* of MatMul 'm'"):
        prove(original, wrong, original)


def test_a_file_that_is_changed_during_the_verification_is_no_finding(tmp_path, monkeypatch):
    proto = net("(float[1,4000] x) => (float[1,4000] y) { y = Add(x, b) }", b=np.ones(4000))
    (tmp_path / "a.onnx").write_bytes(proto.SerializeToString())
    original, result = files.load(tmp_path / "a.onnx"), files.load(proto)
    verify = prover.verify

    def changed(*args, **kwargs):
        verdict = verify(*args, **kwargs)
        os.truncate(tmp_path / "a.onnx", 9000)
        return verdict

    monkeypatch.setattr(prover, "verify", changed)
    with pytest.raises(LoadError) as caught:
        prove(original, result)
    assert caught.value.code == "source-changed"
