"""A claim of bit-identity is held inside the model too, where the outputs would hide a difference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.verify import Kind, Runnable, verify
from onnx_migrate.verify.equivalence import bit_identity as exactness

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
DEAD = "(float[N,4] x) => (float[N,4] y) { p = Mul(x, w) d = Sub(p, far) r = Relu(d) y = Add(r, x) }"
FAR = {"far": [1e6, 0, 0, 0]}
W = np.array([1, 2, 3, 4], np.float32)
OTHER = np.array([9, 2, 3, 4], np.float32)
"""Differs where the Relu always gives zero."""


def runnable(text, **tensors):
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.extend(numpy_helper.from_array(np.float32(v), k) for k, v in tensors.items())
    return Runnable(structure=model.SerializeToString())


def judge(before, after, exact):
    return verify(before, after, exact=exact, isolated=False)


@pytest.mark.parametrize("same", [True, False])
def test_a_difference_that_a_relu_hides_is_found(same):
    before, after = runnable(DEAD, w=W, **FAR), runnable(DEAD, w=OTHER, **FAR)
    assert judge(before, after, None).kind is Kind.VERIFIED, "no output shows it"
    verdict = judge(before, after if same else before, after)
    assert (verdict.kind, verdict.exact) == (Kind.DIFFERS, False)
    assert "bit-identity was claimed, but 'd'" in verdict.reason


def test_a_value_that_lost_its_name_is_let_be():
    renamed = DEAD.replace("d =", "e =").replace("(d)", "(e)")
    verdict = judge(runnable(DEAD, w=W, **FAR), runnable(DEAD, w=W, **FAR), runnable(renamed, w=OTHER, **FAR))
    assert (verdict.kind, verdict.exact, verdict.notes) == (Kind.VERIFIED, True, ())


def test_a_random_value_is_not_held():
    text = "(float[N,4] x) => (float[N,4] y) { y = Abs(x) n = RandomNormalLike<seed=1.0>(x) q = Add(n, x) r = Relu(q) }"
    net = runnable(text)
    verdict = judge(net, net, runnable(text.replace("1.0", "2.0")))
    assert (verdict.kind, verdict.exact) == (Kind.VERIFIED, True)


CHAIN = (
    "(float[N,4] x) => (float[N,4] y) { a = Abs(x) b = Abs(a) c = Abs(b) d = Abs(c) e = Abs(d) y = Abs(e) }"
)


def test_large_values_are_taken_out_a_few_at_a_time_and_time_is_limited(monkeypatch):
    runs = []
    hold = exactness._compare
    monkeypatch.setattr(exactness, "_compare", lambda *args: (runs.append(args[2]), hold(*args)))
    net = runnable(CHAIN)
    assert judge(net, net, net).notes == ()
    assert [len(names) for names in runs] == [5]
    runs.clear()
    monkeypatch.setattr(exactness, "_MEMORY", 2 * 2 * 4 * 8)  # two values of two times four numbers
    assert judge(net, net, net).notes == ()
    assert [len(names) for names in runs] == [2, 2, 1]
    assert sorted(name for names in runs for name in names) == list("abcde")
    runs.clear()
    monkeypatch.setattr("onnx_migrate.verify.equivalence.verifier._PATIENCE", 0.0)
    monkeypatch.setattr(exactness, "_compare", lambda *_: exactness.time.sleep(1))
    assert "held for 2 of 5 inner values" in judge(net, net, net).notes[0]
