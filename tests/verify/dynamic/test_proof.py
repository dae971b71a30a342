"""Nets whose batch is free, and ways in which one is not: each is refused, by the name of what holds it."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify import Runnable, prove_dynamic
from tests.support.paths import FIXTURES

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def prove(text, symbols, batch=("N",), **options):
    model = onnx.parser.parse_model(HEAD + text)
    runnable = Runnable(structure=model.SerializeToString())
    return prove_dynamic(runnable, symbols, set(batch), isolated=False, **options)


def test_a_free_batch_holds():
    proof = prove(
        "(float[N,4,6] x) => (float[N,24] y) <int64[2] s = {0, -1}> { r = Reshape(x, s) y = Softmax<axis=-1>(r) }",
        {"N": 1},
    )
    assert proof.holds, proof.reason
    assert [dict(t.sizes)["N"] for t in proof.trials] == [1, 2, 3]


def test_an_axis_that_should_perhaps_have_moved_is_told():
    still = "(float[T,4] x) => (float[9,4] y) <int64[2] s = {9, 4}> { m = ReduceMean<keepdims=1, axes=[0]>(x) y = Expand(m, s) }"
    proof = prove(still, {"T": 9}, ())
    assert proof.holds, proof.reason
    (note,) = proof.notes
    assert "axis 0 of output 'y' is 9, as T was" in note
    assert not prove(still, {"T": 7}, ()).notes


@pytest.mark.parametrize(
    ("text", "operator", "constant"),
    [
        pytest.param(
            "(float[N,4,6] x) => (float[A,B,2] y) <int64[3] s = {1, -1, 2}> { [keep] y = Reshape(x, s) }",
            "Reshape",
            ("s", "[1, -1, 2]"),
            id="swallowed",
        ),
        pytest.param(
            "(float[N,4,6] x) => (float[N,24] y) <int64[2] s = {1, 24}> { [keep] y = Reshape(x, s) }",
            "Reshape",
            ("s", "[1, 24]"),
            id="does not run",
        ),
        pytest.param(
            "(float[N,4,6] x) => (float[M,6] y) <int64[2] s = {-1, 6}> { [keep] y = Reshape(x, s) }",
            "Reshape",
            ("s", "[-1, 6]"),
            id="merged",
        ),
        pytest.param(
            "(float[N,4] x) => (float[N,4] y) { a = Relu(x) [keep] y = Softmax<axis=0>(a) }",
            "Softmax",
            ("", ""),
            id="mixed",
        ),
        pytest.param(
            "(float[N,4] x) => (float[A,4] y) <int64[1] i = {0}> { a = Relu(x) [keep] y = Gather<axis=0>(a, i) }",
            "Gather",
            ("i", "[0]"),
            id="first item only",
        ),
    ],
)
def test_a_held_batch_is_refused_by_name(text, operator, constant):
    proof = prove(text, {"N": 1})
    assert not proof.holds
    assert proof.blocker is not None, proof.reason
    assert (proof.blocker.node, proof.blocker.operator) == ("keep", operator)
    assert (proof.blocker.constant, proof.blocker.holds) == constant
    assert "keep" in proof.reason


def test_a_declared_output_that_went_stale_is_refused():
    proof = prove("(float[N,4] x) => (float[1,4] y) { y = Relu(x) }", {"N": 1})
    assert not proof.holds
    assert "'y' is declared {1,4} and came out {2,4}" in proof.reason


def test_one_symbol_is_one_size():
    proof = prove("(float[N,4] x) => (float[4,N] y, float[N,4] z) { z = Relu(x) y = Relu(x) }", {"N": 1})
    assert not proof.holds
    assert "output 'y'" in proof.reason


def test_the_batch_may_lie_on_another_axis_of_an_output():
    proof = prove("(float[N,4] x) => (float[4,N] y) { y = Transpose<perm=[1,0]>(x) }", {"N": 1})
    assert proof.holds, proof.reason


def test_an_output_without_the_batched_input_is_let_be():
    text = (
        "(float[N,4] x) => (float[N,4] y, float[2] p) <float[2] c = {1.0, 2.0}> { y = Relu(x) p = Relu(c) }"
    )
    proof = prove(text, {"N": 1})
    assert proof.holds, proof.reason
    assert "'p'" in proof.notes[0]


STRIDED = """(float[1,2,H,8] x) => (float[1,2,H,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
    a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)
    b = Resize<mode="nearest">(a, , s)
    [skip] y = Add(x, b) }"""


def test_strides_are_a_note_and_no_failure():
    proof = prove(STRIDED, {"H": 8}, ())
    assert proof.holds, proof.reason
    assert "does not take H = 9" in proof.notes[0]


def test_a_frozen_height_is_refused():
    text = "(float[1,2,H,8] x) => (float[1,2,H,8] y) <float[1,1,8,8] prior = {PRIOR}> { [grid] y = Add(x, prior) }"
    proof = prove(text.replace("PRIOR", ",".join(["0.5"] * 64)), {"H": 8}, ())
    assert not proof.holds
    assert "grid" in proof.reason
    assert proof.blocker is not None
    assert proof.blocker.constant == "prior"


def test_an_unknown_symbol_is_misuse():
    with pytest.raises(UsageError, match="'M'"):
        prove("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }", {"M": 1})


# A pixel shuffle with H and W baked into its shapes: twice the height silently is twice the batch.
SHUFFLE = """(float[BATCH,4,H,4] x) => (float[A,1,B,8] y)
    <int64[6] s = {-1,1,2,2,4,4}, int64[4] t = {-1,1,8,8}> {
    a = Relu(x) [shuffle] b = Reshape(a, s) c = Transpose<perm=[0,1,4,2,5,3]>(b) y = Reshape(c, t) }"""


@pytest.mark.parametrize(
    ("batch", "symbols", "names"), [("N", {"N": 1, "H": 4}, ("N",)), ("1", {"H": 4}, ())]
)
def test_a_dim_that_leaks_into_the_batch_is_refused_by_name(batch, symbols, names):
    proof = prove(SHUFFLE.replace("BATCH", batch), symbols, names)
    assert not proof.holds
    assert "its axis 0 is the batch, which was 1" in proof.reason
    assert proof.blocker is not None
    assert (proof.blocker.node, proof.blocker.holds) == ("shuffle", "[-1, 1, 2, 2, 4, 4]")


@pytest.mark.parametrize(
    ("batch", "symbols", "names"), [("N", {"N": 1, "T": 4}, ("N",)), ("1", {"T": 4}, ())]
)
def test_a_dim_that_becomes_axis_0_rightly_is_no_leak(batch, symbols, names):
    text = (
        f"(float[{batch},2,T] x) => (float[T,{batch},2] y) {{ a = Relu(x) y = Transpose<perm=[2,0,1]>(a) }}"
    )
    proof = prove(text, symbols, names)
    assert proof.holds, proof.reason


def test_a_leak_where_the_batch_is_not_first_is_refused():
    text = """(float[N,2,T] x) => (float[2,A,4] y) <int64[3] s = {2,-1,4}> {
        a = Transpose<perm=[1,0,2]>(x) [fold] y = Reshape(a, s) }"""
    proof = prove(text, {"N": 1, "T": 4})
    assert not proof.holds
    assert "its axis 1 is the batch" in proof.reason
    assert proof.blocker is not None
    assert proof.blocker.node == "fold"


def test_what_the_optimiser_gets_wrong_at_the_own_sizes_is_a_note():
    model = onnx.load(FIXTURES / "pad_maxpool_opset9.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
    proof = prove_dynamic(Runnable(structure=model.SerializeToString()), {"N": 1}, {"N"}, isolated=False)
    assert proof.holds, proof.reason
    assert "optimised, ONNX Runtime gives another 'y'" in proof.notes[0]


def test_the_weight_is_named_by_its_shape():
    text = "(float[1,C,8] x) => (float[1,2,A] y) <float[2,3,3] w = {WEIGHT}, float[2] b = {1, 2}> { [conv] y = Conv(x, w, b) }"
    proof = prove(text.replace("WEIGHT", ",".join(["0.5"] * 18)), {"C": 3}, ())
    assert proof.blocker is not None
    assert str(proof.blocker) == "Conv 'conv' with 'w' = float[2, 3, 3]"


def test_two_batches_that_can_differ():
    both = "(float[N,4] x, float[M,4] z) => (float[N,M] y) { [keep] y = Gemm<transB=1>(x, z) }"
    proof = prove(both, {"N": 1, "M": 1}, ("N", "M"))
    assert proof.holds, proof.reason
    assert {"M": 2, "N": 3} in [dict(trial.sizes) for trial in proof.trials]
    one = prove(both.replace("M", "N"), {"N": 1})
    assert "every item of a batch meets every other" in one.reason


def test_two_batches_that_are_one():
    proof = prove(
        "(float[N,4] x, float[M,4] z) => (float[N,4] y) { y = Add(x, z) }", {"N": 1, "M": 1}, ("N", "M")
    )
    assert proof.holds, proof.reason
    assert proof.notes == ("M and N are one batch: the model runs where they are equal only",)
