"""When an output counts as the same."""

from __future__ import annotations

import pytest

from onnx_migrate.verdicts.comparison import Comparison


@pytest.mark.parametrize(
    ("differing", "problem", "identical", "agrees"),
    [
        (0, "", True, True),
        (1, "", False, True),
        (1, "differs by 2", False, False),
        (0, "has another shape", False, False),
    ],
)
def test_an_output_agrees_within_what_is_allowed_and_is_identical_bit_for_bit(
    differing: int, problem: str, identical: bool, agrees: bool
) -> None:
    found = Comparison(
        "y", (2,), (2,), "float32", "float32", elements=2, differing=differing, problem=problem
    )

    assert (found.identical, found.agrees) == (identical, agrees)
