"""What a refusal suggests, and in which order."""

from __future__ import annotations

import itertools

from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.candidates import candidates
from onnx_migrate.verify.inputs.generate import Corrections
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.verify.harness import net

TEXT = "(float[2,A] a, float[2,B] b, int64[3] i) => (float[2,A] y) { s = Add(a, b) y = Gather<axis=1>(s, i) }"


def suggested(message, text=TEXT):
    model = net(text)
    return list(candidates(model, None, size_choices(model)[0], Corrections(), EvaluationError(message)))


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
