"""Nets whose batch is free, and ways in which one is not: each is refused, by the name of what holds it."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify import Runnable, prove_dynamic

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def prove(text, symbols, batch=("N",), **options):
    model = onnx.parser.parse_model(HEAD + text)
    runnable = Runnable(structure=model.SerializeToString())
    return prove_dynamic(runnable, symbols, set(batch), isolated=False, **options)


def test_a_free_batch_holds():
    proof = prove(
        "(float[N,4,6] x) => (float[N,24] y) <int64[2] s = {0, -1}> { r = Reshape(x, s) y = Softmax<axis=-1>(r) }",  # noqa: E501
        {"N": 1},
    )
    assert proof.holds, proof.reason
    assert [dict(t.sizes)["N"] for t in proof.trials] == [1, 2, 3]


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
            "(float[N,4] x) => (float[A,4] y) <int64[1] i = {0}> { a = Relu(x) [keep] y = Gather<axis=0>(a, i) }",  # noqa: E501
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
    text = "(float[1,2,H,8] x) => (float[1,2,H,8] y) <float[1,1,8,8] prior = {PRIOR}> { [grid] y = Add(x, prior) }"  # noqa: E501
    proof = prove(text.replace("PRIOR", ",".join(["0.5"] * 64)), {"H": 8}, ())
    assert not proof.holds
    assert "grid" in proof.reason
    assert proof.blocker is not None
    assert proof.blocker.constant == "prior"


def test_an_unknown_symbol_is_misuse():
    with pytest.raises(UsageError, match="'M'"):
        prove("(float[N,4] x) => (float[N,4] y) { y = Relu(x) }", {"M": 1})
