"""Dims that are no batch: two other sizes, with the batch unchanged."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.dynamic import other_sizes
from tests.verify.harness import net, prove

# A pixel shuffle with H and W baked into its shapes: twice the height silently is twice the batch.
SHUFFLE = """(float[BATCH,4,H,4] x) => (float[A,1,B,8] y)
    <int64[6] s = {-1,1,2,2,4,4}, int64[4] t = {-1,1,8,8}> {
    a = Relu(x) [shuffle] b = Reshape(a, s) c = Transpose<perm=[0,1,4,2,5,3]>(b) y = Reshape(c, t) }"""


@pytest.mark.parametrize(
    ("batch", "symbols", "names"), [("N", {"N": 1, "H": 4}, ("N",)), ("1", {"H": 4}, ())]
)
def test_a_dim_that_merges_into_the_batch_is_refused_with_the_node(batch, symbols, names):
    proof = prove(SHUFFLE.replace("BATCH", batch), symbols, names)
    assert not proof.holds
    assert "axis 0 of output 'y' is the batch and should stay 1 whatever H is" in proof.reason
    assert proof.blocker is not None
    assert (proof.blocker.node, proof.blocker.holds) == ("shuffle", "[-1, 1, 2, 2, 4, 4]")


@pytest.mark.parametrize(
    ("batch", "symbols", "names"), [("N", {"N": 1, "T": 4}, ("N",)), ("1", {"T": 4}, ())]
)
def test_a_dim_that_becomes_axis_0_by_a_transpose_is_accepted(batch, symbols, names):
    text = (
        f"(float[{batch},2,T] x) => (float[T,{batch},2] y) {{ a = Relu(x) y = Transpose<perm=[2,0,1]>(a) }}"
    )
    proof = prove(text, symbols, names)
    assert proof.holds, proof.reason


def test_a_dim_that_merges_into_a_batch_on_another_axis_is_refused():
    text = """(float[N,2,T] x) => (float[2,A,4] y) <int64[3] s = {2,-1,4}> {
        a = Transpose<perm=[1,0,2]>(x) [fold] y = Reshape(a, s) }"""
    proof = prove(text, {"N": 1, "T": 4})
    assert not proof.holds
    assert "axis 1 of output 'y' is the batch" in proof.reason
    assert proof.blocker is not None
    assert proof.blocker.node == "fold"


def test_an_output_axis_that_stays_at_the_old_size_is_noted():
    fixed = "(float[T,4] x) => (float[9,4] y) <int64[2] s = {9, 4}> { m = ReduceMean<keepdims=1, axes=[0]>(x) y = Expand(m, s) }"
    proof = prove(fixed, {"T": 9}, ())
    assert proof.holds, proof.reason
    (note,) = proof.notes
    assert "axis 0 of output 'y' is 9, the original size of T" in note
    assert not prove(fixed, {"T": 7}, ()).notes


def test_a_model_that_runs_at_one_other_size_only_is_refused_with_the_sizes_tried():
    table = net("(float[1,T] x) => (float[1,T] y) { [add] y = Add(x, p) }", p=[[0.5] * 6])
    proof = prove(table, {"T": 6}, ())
    assert not proof.holds
    tried = " or ".join(str(6 + more) for more in other_sizes._INCREMENTS)
    assert f"the model does not run with T = {tried}" in proof.reason
    assert proof.blocker is not None
    assert proof.blocker.node == "add"


def test_sizes_that_must_divide_by_a_stride_are_said_as_steps():
    text = """(float[1,1,H] x) => (float[1,1,H] y) <float[1,1,8] w, float[1,1,8] v> {
        c = Conv<strides=[8]>(x, w) u = ConvTranspose<strides=[8]>(c, v) y = Add(x, u) }"""
    ones = [[[0.5] * 8]]
    proof = prove(net(text.replace("<float[1,1,8] w, float[1,1,8] v>", ""), w=ones, v=ones), {"H": 16}, ())
    assert proof.holds, proof.reason
    assert any("it does at 48 and 80, in steps of 8" in note for note in proof.notes), proof.notes


def test_the_largest_size_is_said_where_larger_ones_fail():
    text = "(float[T] x) => (float[T] y) { s = Shape(x) z = Constant<value = int64[1] {0}>() q = Slice(p, z, s) y = Add(x, q) }"
    proof = prove(net(text, p=[0.5] * 20), {"T": 9}, ())
    assert not proof.holds or any("it does up to 20" in note for note in proof.notes)
    longer = prove(net(text, p=[0.5] * 50), {"T": 9}, ())
    assert longer.holds, longer.reason
    assert any("it does up to 50" in note for note in longer.notes) or not longer.notes
