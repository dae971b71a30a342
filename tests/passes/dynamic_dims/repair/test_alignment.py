"""How the factors and axes of a Reshape are aligned."""

from __future__ import annotations

import pytest
from onnx_migrate.passes.dynamic_dims.repair.domain import SAMPLES, Assignments, Dim, fixed
from onnx_migrate.passes.dynamic_dims.repair.reshape_alignment import (
    Misaligned,
    align,
    interpretations,
    merge_fixed,
)

ASSIGNMENTS = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
N, H = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["H"])


def dims(*sizes: int | Dim) -> list[Dim]:
    return [fixed(size) if isinstance(size, int) else size for size in sizes]


def times(*parts: Dim) -> tuple[int, ...]:
    sizes = [1] * SAMPLES
    for part in parts:
        sizes = [a * b for a, b in zip(sizes, part.sizes, strict=True)]
    return tuple(sizes)


@pytest.mark.parametrize(
    ("given", "frozen", "free", "expected"),
    [
        (dims(N, 8, 3), (1, 6, 4), None, [(N, 6, 4)]),
        (dims(N, H, 4), (1, 48), None, [(N, times(H, *dims(4)))]),
        (dims(N, H, 4), (12, 4), None, [(times(N, H), 4)]),
        (dims(H, N, 4), (12, 4), None, [(times(H, N), 4), (H, times(N, *dims(4)))]),
        (dims(H, N, 8), (12, 2, 4), None, [(H, times(N, *dims(2)), 4), (times(H, N), 2, 4)]),
        (dims(N, 1, 5), (1, 5), None, [(N, 5)]),
        (dims(N, 5), (1, 1, 5), None, [(N, 1, 5), (1, N, 5), (1, 1, times(N, *dims(5)))]),
        (dims(N, 1, 5), (1, 1, 5), None, [(N, 1, 5)]),
        (dims(N, H), (1, 3, 4), 1, [(N, tuple(size // 4 for size in H.sizes), 4)]),
        (dims(N, H), (1, 3, 4), None, [(N, tuple(size // 4 for size in H.sizes), 4)]),
        (dims(N, H), (1, 6, 2), None, [(N, tuple(size // 2 for size in H.sizes), 2)]),
        (dims(N, H, 5), (1, 20, 3), None, []),
    ],
)
def test_interpretations_come_likeliest_first(
    given: list[Dim], frozen: tuple[int, ...], free: int | None, expected: list[tuple[object, ...]]
) -> None:
    found = interpretations(given, frozen, free)

    plain = [tuple(dim.sizes for dim in way.dims) for way in found if way.order is None]
    wanted = [
        tuple(
            dim.sizes if isinstance(dim, Dim) else (dim,) * 4 if isinstance(dim, int) else dim for dim in way
        )
        for way in expected
    ]
    assert plain[: len(wanted)] == wanted
    assert bool(plain) == bool(wanted)


def test_a_merged_axis_is_split_into_its_factors() -> None:
    rows, features = interpretations(dims(N, H, 4), (12, 4), None)[0].dims

    assert interpretations([rows, features], (1, 12, 4), None)[0].dims == (
        N,
        H,
        fixed(4),
    )


def test_a_batch_that_moves_past_another_axis_needs_a_transpose() -> None:
    last = interpretations(dims(N, 5), (5, 1), None)[-1]

    assert last.dims == (fixed(5), N)
    assert last.order == (1, 0)


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
