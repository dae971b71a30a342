"""What a refusal suggests, and in which order; what the runtime refuses is corrected by what it says."""

from __future__ import annotations

import itertools

import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.refusals import candidates, corrected
from tests.verify.harness import outputs, random_inputs


def correct(text):
    inputs = random_inputs(text)

    def run(feed):
        return outputs(inputs.model, feed)

    with pytest.raises(EvaluationError) as refused:
        run(inputs.feed("normal"))
    return corrected(inputs, run, refused.value)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("(float[1,A] a, float[1,B] b) => (float[1,C] y) { y = Add(a, b) }", [{7}, {8}, {1}]),
        (
            """(float[1,A] past, float[1,B] now, float[1,C] mask) => (float[1,D] y) {
            all = Concat<axis=1>(past, now) y = Add(all, mask) }""",
            [{15}, {17}, {9}],
        ),
        (
            "(float[N,T,K] x) => (float[N,T,2] y) <float[3,2] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }",
            [{3}],
        ),
        ("(float[N,A,4] a, float[N,B,3] b) => (float[N,A,3] y) { y = MatMul(a, b) }", [{4}]),
    ],
    ids=["equal", "the sum of two", "only of a constant", "only of another input"],
)
def test_a_length_that_must_be_that_of_others(text, sizes):
    assert set(correct(text).sizes.values()) in sizes


def test_values_that_count_elements_of_another_input():
    text = """(float[3,2] x, int64[1] n) => (float[a,b] y) <int64[1] k = {6}> {
      m = Mul(n, n) s = Concat<axis=0>(m, k) y = Reshape(x, s) }"""
    found = correct(text).values["n"]
    assert (found.low, found.high) == (1, 1)


def test_what_no_input_can_mend_is_given_up():
    assert correct("(float[2,3] a, float[2,4] b) => (float[2,3] y) { y = MatMul(a, b) }") is None


TEXT = "(float[2,A] a, float[2,B] b, int64[3] i) => (float[2,A] y) { s = Add(a, b) y = Gather<axis=1>(s, i) }"


def suggested(message, text=TEXT):
    return list(candidates(random_inputs(text), EvaluationError(message)))


def test_sizes_that_are_named_come_first():
    first, *_ = suggested("Add '': dimension 7 by 8")
    assert first.sizes == {"A": 8}


def test_values_come_first_where_an_index_is_wrong():
    first, *_ = suggested("Gather '': index 9 is out of bounds, must be in [0, 5)")
    assert (first.values["i"].low, first.values["i"].high) == (0, 4)


def test_only_inputs_that_the_failing_node_depends_on_change_their_values():
    assert not any(candidate.values for candidate in suggested("Add '': dimension 7 by 8"))


def test_sizes_of_other_dims_come_last():
    *_, last = suggested("Add '': does not fit")
    assert last.sizes


def test_strings_may_have_to_be_numbers():
    text = "(string[2] s) => (float[2] y) { y = Cast<to=1>(s) }"
    words = itertools.chain(
        *(c.values["s"].words for c in suggested("Cast '': invalid string", text) if c.values)
    )
    assert all(float(word) is not None for word in words)
