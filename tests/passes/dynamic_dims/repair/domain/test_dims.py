"""Axes, merged axes and sample assignments."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, merged_axis


def test_no_two_symbols_have_one_size() -> None:
    assignments = Assignments.of({"N": 1, "M": 1, "H": 64, "W": 64, "K": 5}, {"N", "M", "K"}, 64)

    for assignment in (1, 2):
        assert len({sizes[assignment] for sizes in assignments.sizes.values()}) == 5
    assert {name for name, sizes in assignments.sizes.items() if sizes[3] != sizes[0]} == {"N", "M", "K"}
    assert all(sizes[assignment] != sizes[0] for sizes in assignments.sizes.values() for assignment in (1, 2))


def test_a_merged_axis_holds_its_factors_in_order() -> None:
    n, fixed = Dim((1, 3, 5, 7)), Dim((6, 6, 6, 6))

    assert merged_axis([n, fixed]).sizes == (6, 18, 30, 42)
    assert merged_axis([n, fixed]).flat_factors() == [n, fixed]
    assert merged_axis([fixed]) is fixed
    assert not merged_axis([fixed, fixed]).factors


@pytest.mark.parametrize(
    ("length", "text", "symbols"),
    [
        (lambda n, h: h, "H", ["H"]),
        (lambda n, h: 5, "5", []),
        (lambda n, h: h // 2, "≈H/2", ["H"]),
        (lambda n, h: 3 * h, "3 × H", ["H"]),
        (lambda n, h: h + 1, "H + 1", ["H"]),
        (lambda n, h: h * h, "144, which changes with H and W", ["H", "W"]),
        (lambda n, h: n * n + 1, "2, which changes with N and H and W", ["N", "H", "W"]),
    ],
)
def test_lengths_as_the_report_shows_them(
    length: Callable[[int, int], int], text: str, symbols: list[str]
) -> None:
    assignments = Assignments.of({"N": 1, "H": 12, "W": 20}, {"N"}, 64)
    dim = Dim(tuple(map(length, assignments.sizes["N"], assignments.sizes["H"])))

    assert assignments.text(dim) == text
    assert assignments.symbols_in(dim) == symbols


def test_a_merged_axis_is_shown_as_a_product() -> None:
    assignments = Assignments.of({"N": 1, "H": 12}, {"N"}, 64)
    n, h = (Dim(assignments.sizes[symbol]) for symbol in "NH")
    longer = Dim(tuple(size + 1 for size in h.sizes))

    assert assignments.text(merged_axis([n, longer])) == "N × (H + 1)"
