"""Wrong repairs that mix the items of a batch and still run without an error: the proof refuses each."""

from __future__ import annotations

import numpy as np
import pytest

from tests.verify.harness import net, prove

WRONG = {
    "rows of other items": """(float[N,4] x) => (float[N,4] y) <int64[2] s = {4, -1}> {
        r = Reshape(x, s) y = Transpose<perm=[1,0]>(r) }""",
    "items in another order": """(float[N,4] x) => (float[N,4] y)
        <int64[1] b = {-1}, int64[1] e = {-1000}, int64[1] a = {0}, int64[1] s = {-1}> { y = Slice(x, b, e, a, s) }""",
    "a sum over what came before": "(float[N,4] x) => (float[N,4] y) <int64 a = {0}> { y = CumSum(x, a) }",
    "scaled by the largest of all": """(float[N,4] x) => (float[N,4] y) {
        a = Abs(x) m = ReduceMax<keepdims=0>(a) y = Div(x, m) }""",
    "a thousandth of the mean": """(float[N,4] x) => (float[N,4] y) <float k = {0.001}> {
        m = ReduceMean<axes=[0], keepdims=1>(x) l = Mul(m, k) y = Add(x, l) }""",
    "under a saturated sigmoid": """(float[N,4] x) => (float[N,4] y) <float k = {0.01}, float b = {-40.}> {
        m = ReduceMean<axes=[0], keepdims=1>(x) l = Mul(m, k) a = Add(x, l) c = Add(a, b) y = Sigmoid(c) }""",
    "under an index": """(float[N,40] x) => (int64[N] y) <float k = {0.001}> {
        m = ReduceMean<axes=[0], keepdims=1>(x) l = Mul(m, k) a = Add(x, l) y = ArgMax<axis=1, keepdims=0>(a) }""",
    "under a comparison": """(float[N,4] x) => (bool[N,4] y) <float k = {0.001}, float z = {100.}> {
        m = ReduceMean<axes=[0], keepdims=1>(x) l = Mul(m, k) a = Add(x, l) y = Greater(a, z) }""",
    "attention over items": """(float[N,4] x) => (float[N,4] y) {
        t = Transpose<perm=[1,0]>(x) s = MatMul(x, t) p = Softmax<axis=-1>(s) y = MatMul(p, x) }""",
    "the first item for all": """(float[N,4] x) => (float[N,4] y) <int64[1] i = {0}> {
        f = Gather<axis=0>(x, i) h = Shape(x) y = Expand(f, h) }""",
    "heads of other items": """(float[T,N,8] x) => (float[T,N,8] y) <int64[3] s = {-1, 2, 4}, int64[3] r = {3, -1, 8}> {
        a = Reshape(x, s) q = Transpose<perm=[1,0,2]>(a) k = Transpose<perm=[0,2,1]>(q) w = MatMul(q, k)
        p = Softmax<axis=-1>(w) o = MatMul(p, q) b = Transpose<perm=[1,0,2]>(o) y = Reshape(b, r) }""",
    "a state of the item before": """(float[N,3,2] x) => (float[N,d,3,1] y)
        <float[1,1,2] w = {1., -1.}, float[1,1,1] r = {0.5}> { y = RNN<hidden_size=1>(x, w, r) }""",
    "two outputs, one of them wrong": """(float[N,4] x) => (float[N,4] y, float[N,4] z) {
        y = Relu(x) z = Softmax<axis=0>(x) }""",
}


@pytest.mark.parametrize("name", WRONG)
def test_it_is_refused(name: str) -> None:
    model = net(WRONG[name])
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param == "T":
                dim.dim_value = 3

    assert not prove(model, {"N": 1}).holds


def test_a_correct_model_of_the_same_operators_is_not_refused() -> None:
    right = """(float[N,40] x) => (int64[N] label, float[N,40] p, bool[N,40] q) <float z = {0.}, float b = {-40.}> {
        label = ArgMax<axis=1, keepdims=0>(x) c = Add(x, b) p = Sigmoid(c) q = Greater(x, z) }"""

    proof = prove(right, {"N": 1})

    assert proof.holds, proof.reason


@pytest.mark.parametrize(("read", "holds"), [("m", True), ("f", False)], ids=["its own", "that of the first"])
def test_the_padding_of_texts_is_that_of_each(read: str, holds: bool) -> None:
    """Of a thousand ids, made-up texts rarely have the one that pads them; then all have the same mask."""
    text = """(int64[N,8] x) => (float[N,8] y) <int64 pad = {1}, int64[1] i = {0}> {
        e = Equal(x, pad) n = Not(e) m = Cast<to=1>(n) f = Gather<axis=0>(m, i) g = Gather(t, x) y = Mul(g, READ) }"""

    proof = prove(net(text.replace("READ", read), t=np.arange(1000.0)), {"N": 1})

    assert proof.holds == holds, proof.reason


def test_a_model_that_does_not_run_on_padded_texts_is_proved_on_others() -> None:
    text = """(int64[N,8] x) => (float[N,8] y) <int64 pad = {1}> { e = Equal(x, pad) c = Cast<to=6>(e)
        k = ReduceMax<keepdims=0>(c) l = Cast<to=7>(k) h = Gather(one, l) g = Gather(t, x) y = Mul(g, h) }"""

    proof = prove(net(text, t=np.arange(1000.0), one=[1.0]), {"N": 1})

    assert proof.holds, proof.reason
