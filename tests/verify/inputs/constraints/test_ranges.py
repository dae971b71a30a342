"""How what two nodes accept combines."""

from __future__ import annotations

from onnx_migrate.verify.inputs.constraints.ranges import Range


def test_two_ranges_combine_to_what_satisfies_both():
    assert Range(0, 5).intersection(Range(3, 9)) == Range(3, 5)
    assert Range(0, 1).intersection(Range(3, 9)) == Range(0, 1), "none satisfies both"
    assert Range(0, 1, weak=True).intersection(Range(3, 9)) == Range(3, 9), "a guess is replaced"
    pattern = Range(1, 2, (1.0, 2.0))
    assert Range(0, 9).intersection(pattern) == pattern


def test_a_divisor_that_is_an_index_is_an_index_that_is_not_zero():
    assert Range(0, 5).intersection(Range(1, 8, discrete=True)) == Range(1, 5)


def test_an_exact_vector_may_be_empty():
    assert Range.exactly() == Range(0, 0)
    assert Range.exactly(2, 3, 1) == Range(1, 3, (2, 3, 1))
