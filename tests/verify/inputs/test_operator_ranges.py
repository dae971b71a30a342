"""What operators accept: ranges, and how two of them combine."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verify.inputs.operator_ranges import Range, accepted_range, inputs_passed_through


def node(operator, inputs, **attributes):
    return onnx.helper.make_node(operator, inputs, ["y"], **attributes)


def lengths(name, axis):
    return {("data", 0): 4, ("data", 1): 9}.get((name, axis))


def test_two_ranges_combine_to_what_satisfies_both():
    assert Range(0, 5).intersection(Range(3, 9)) == Range(3, 5)
    assert Range(0, 1).intersection(Range(3, 9)) == Range(0, 1), "none satisfies both"
    assert Range(0, 1, weak=True).intersection(Range(3, 9)) == Range(3, 9), "a guess is replaced"
    pattern = Range(1, 2, (1.0, 2.0))
    assert Range(0, 9).intersection(pattern) == pattern


@pytest.mark.parametrize(
    ("operator", "attributes", "index", "high"),
    [
        ("Gather", {}, 1, 3),
        ("Gather", {"axis": 1}, 1, 8),
        ("GatherND", {}, 1, 3),
        ("OneHot", {}, 0, 7),
    ],
)
def test_indices_are_below_the_length_of_their_axis(operator, attributes, index, high):
    accepted = accepted_range(node(operator, ["data", "i"], **attributes), index, lengths)
    assert (accepted.low, accepted.high) == (0, high)


def test_indices_into_an_axis_of_unknown_length_are_a_guess():
    accepted = accepted_range(node("Gather", ["other", "i"]), 1, lengths)
    assert accepted.weak
    assert accepted.high == 1


def test_only_restricting_inputs_have_a_range():
    assert accepted_range(node("Gather", ["data", "i"]), 0, lengths) is None
    assert accepted_range(node("Sqrt", ["x"]), 0, lengths).low > 0
    assert accepted_range(node("Relu", ["x"]), 0, lengths) is None


def test_elements_pass_through_some_inputs():
    assert list(inputs_passed_through(node("Concat", ["a", "b", "c"], axis=0))) == [0, 1, 2]
    assert tuple(inputs_passed_through(node("Where", ["c", "a", "b"]))) == (1, 2)
    assert tuple(inputs_passed_through(node("Reshape", ["x", "s"]))) == (0,)
    assert not tuple(inputs_passed_through(node("Relu", ["x"])))
