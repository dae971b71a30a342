"""Axes, merged axes and sample assignments."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.repair.domain import Assignments, Dim, merged_axis


def test_no_two_symbols_have_one_size() -> None:
    assignments = Assignments.of({"N": 1, "M": 1, "H": 64, "W": 64, "K": 5}, {"N", "M", "K"}, 64)

    for assignment in (1, 2):
        assert len({sizes[assignment] for sizes in assignments.sizes.values()}) == 5
    assert {name for name, sizes in assignments.sizes.items() if sizes[3] != sizes[0]} == {"N", "M", "K"}
    assert all(sizes[assignment] != sizes[0] for sizes in assignments.sizes.values() for assignment in (1, 2))


def test_a_merged_axis_holds_its_factors_in_order() -> None:
    n, fixed = Dim((1, 3, 5, 7)), Dim((6, 6, 6, 6))

    assert merged_axis([n, fixed], 4).sizes == (6, 18, 30, 42)
    assert merged_axis([n, fixed], 4).flat_factors() == [n, fixed]
    assert merged_axis([fixed], 4) is fixed
    assert not merged_axis([fixed, fixed], 4).factors
