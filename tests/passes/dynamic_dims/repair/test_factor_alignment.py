"""Factors longer than 1 are assigned to output axes in row-major order."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, fixed
from onnx_migrate.passes.dynamic_dims.repair.reshape_alignment import Misaligned, align, merge_fixed

ASSIGNMENTS = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
N, H = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["H"])


def test_fixed_neighbours_are_merged_and_varying_axes_are_not() -> None:
    factors = [(fixed(2), 0), (fixed(3), 1), (H, 2), (fixed(5), 3)]

    assert merge_fixed(factors) == [(fixed(6), 1), (H, 2), (fixed(5), 3)]


def test_a_varying_axis_of_length_one_waits_at_its_boundary() -> None:
    found = align([(N, 0), (fixed(8), 1)], (2, 1, 4), None, second_varies=False)

    assert found.axes == [[fixed(2)], [], [fixed(4)]]
    assert found.boundaries == [([(N, 0)], []), ([], [1]), ([], [])]
    assert found.split == {0}


@pytest.mark.parametrize(
    ("frozen", "second_varies", "free", "varying"),
    [((6, 2), False, None, 0), ((2, 6), True, None, 1), ((2, 6), False, 1, 1)],
)
def test_one_part_of_a_split_varying_axis_varies(
    frozen: tuple[int, int], second_varies: bool, free: int | None, varying: int
) -> None:
    found = align([(H, 0)], frozen, free, second_varies=second_varies)

    assert [dim.varies for (dim,) in found.axes] == [varying == 0, varying == 1]


def test_lengths_without_a_common_factor_are_misaligned() -> None:
    with pytest.raises(Misaligned):
        align([(fixed(9), 0), (fixed(4), 1)], (4, 9), None, second_varies=False)
