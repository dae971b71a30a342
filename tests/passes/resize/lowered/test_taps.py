"""A Resize as Gathers: what is written, and how little where an axis stays or a product of weights is large."""

from __future__ import annotations

from tests.lowering import lower
from tests.passes.lowerings.test_resize import operators, resize


def test_nearest_is_one_gather_for_each_axis_that_changes() -> None:
    proto = resize(sizes=[1, 2, 8, 7], mode="nearest", coordinate_transformation_mode="align_corners")
    assert operators(lower(proto, 10)[0]) == ["Gather"]


def test_large_products_of_weights_are_not_stored() -> None:
    small = resize((1, 1, 4, 4), sizes=[1, 1, 7, 9], mode="linear")
    large = resize((1, 1, 40, 40), sizes=[1, 1, 70, 90], mode="linear")
    result = lower(large, 10)[0]
    assert operators(lower(small, 10)[0]).count("Mul") == 4
    assert operators(result).count("Mul") == 8
    assert max(len(tensor.raw_data) for tensor in result.graph.initializer) <= 90 * 8


def test_a_resize_that_changes_no_length_is_an_identity() -> None:
    proto = resize(sizes=[1, 2, 5, 7], mode="cubic")
    assert operators(lower(proto, 10)[0]) == ["Identity"]
