"""How many axes operators ask for."""

from __future__ import annotations

import pytest

from onnx_migrate.standard.ranks import number_violation, rank_violation


@pytest.mark.parametrize(
    ("operator", "ranks", "axis", "said"),
    [
        ("Gather", [0, 1], 0, "has an input of 0 axes, and Gather takes 1 or more"),
        ("SpaceToDepth", [3], 0, "takes 4 or more"),
        ("GatherElements", [2, 0], 0, "has 2 axes in input 0 and 0 in input 1"),
        ("ScatterElements", [2, 2, 1], 0, "and 1 in input 2"),
        ("QuantizeLinear", [0, 0, 4], 1, "has 0 axes in input 1 and 4 in input 2"),
        ("TopK", [2, 1], 2, "has axis=2, and its input has 2 axes"),
    ],
)
def test_what_a_text_rules_out_is_said(operator: str, ranks: list[int | None], axis: int, said: str) -> None:
    assert said in str(rank_violation(operator, ranks, axis))


@pytest.mark.parametrize(
    ("operator", "ranks", "axis"),
    [
        ("Gather", [1, 0], -1),
        ("GatherElements", [2, None], 1),
        ("GatherElements", [None, 0], 5),
        ("Relu", [0], 0),
        ("QuantizeLinear", [4, 1, 1], 1),
        ("QuantizeLinear", [4, 0], 1),
        ("Split", [], 0),
    ],
)
def test_what_may_be_valid_is_not_refused(operator: str, ranks: list[int | None], axis: int) -> None:
    assert rank_violation(operator, ranks, axis) is None


@pytest.mark.parametrize(
    ("name", "numbers", "said"),
    [
        ("axis", [2**62], "has axis=4611686018427387904, which is beyond"),
        ("time_axis", [2], "has time_axis=2, and its input has 2 axes"),
        ("strides", [1, 0], "has strides=0, which must be 1 or more"),
        ("input 1", [-(2**63), 3], "has input 1=-9223372036854775808"),
    ],
)
def test_numbers_that_are_no_axis_and_no_size(name: str, numbers: list[int], said: str) -> None:
    assert str(number_violation(name, numbers, 2)).startswith(said)


def test_numbers_that_may_be() -> None:
    assert number_violation("batch_axis", [-2], 2) is None
    assert number_violation("batch_axis", [7], None) is None
    assert number_violation("pads", [-1, 0, 2**31], 2) is None
