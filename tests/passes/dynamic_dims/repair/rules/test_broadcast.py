"""Operands of fixed length are expanded, tiled or reduced to one row beside operands that vary."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import run
from tests.support.repairs import check_items, repaired, text


def test_a_class_token_is_concatenated_to_every_item() -> None:
    source = text(
        "float[1,3,2] x", "float[1,4,2] y", "y = Concat<axis=1>(token, x)", "float[1,1,2] token = {5, 6}"
    )

    _, reasons = check_items(source, {"x": 0}, [0])

    assert "'token'" in reasons[0]


def test_indices_shared_by_all_items_are_expanded() -> None:
    source = text(
        "float[1,3,2] x",
        "float[1,2,2] y",
        "y = GatherElements<axis=1>(x, k)",
        "int64[1,2,2] k = {0, 1, 2, 0}",
    )

    check_items(source, {"x": 0}, [0])


def test_a_constant_with_equal_rows_becomes_one_row() -> None:
    """zeros_like, folded."""
    source = text(
        "float[1,3,2] x, bool[1,3,1] c", "float[1,3,2] y", "y = Where(c, x, z)",
        "float[1,3,2] z = {5, 6, 5, 6, 5, 6}",
    )  # fmt: skip

    result, log = repaired(source, {"x": {0: "N", 1: "T"}, "c": {0: "N", 1: "T"}})

    assert "equal rows" in log.changes[0].reason
    x = np.zeros((2, 7, 2), np.float32)
    y = run(result, {"x": x, "c": np.zeros((2, 7, 1), bool)})[0]
    np.testing.assert_array_equal(y, np.broadcast_to(np.array([5, 6], np.float32), (2, 7, 2)))
    with pytest.raises(CannotMigrate, match="'z'"):
        repaired(source.replace("5, 6, 5, 6, 5, 6", "5, 6, 5, 6, 5, 7"), {"x": {1: "T"}, "c": {1: "T"}})


def test_the_inverse_of_a_sort_by_length_ranks_all_items() -> None:
    """What PyTorch writes for a packed sequence: sorted by length, and the inverse of that order by a scatter."""
    source = text(
        "float[1,2] x, int64[1] lengths", "float[1,2] y",
        """k = Shape(lengths) s, order = TopK(lengths, k) a = Gather<axis=0>(x, order) b = Relu(a)
        back = ScatterElements<axis=0>(zero, order, zero) y = Gather<axis=0>(b, back)""",
        "int64[1] zero = {0}",
    )  # fmt: skip
    result, log = repaired(source, {"x": {0: "N"}, "lengths": {0: "N"}})

    x = np.array([[1, -1], [2, -2], [3, -3]], np.float32)
    y = run(result, {"x": x, "lengths": np.array([4, 9, 6])})[0]
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    assert "updates [0] → 0, 1, …, N - 1" in log.changes[-1].reason


@pytest.mark.parametrize("operator", ["MatMul", "Add"])
def test_a_constant_for_each_head_is_tiled_where_the_batch_is_merged_with_the_heads(operator: str) -> None:
    source = text(
        "float[1,2,3,3] x", "float[1,2,3,3] y", f"a = Reshape(x, k) b = {operator}(a, heads) y = Reshape(b, j)",
        "int64[3] k = {2, 3, 3}, int64[4] j = {1, 2, 3, 3}, "
        "float[2,3,3] heads = {1,2,3,4,5,6,7,8,9,9,8,7,6,5,4,3,2,1}",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert "'heads' is tiled along axis 0 to N × 2" in reasons


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="onnx is older")
def test_the_masks_of_windows_are_tiled_where_the_batch_is_merged_with_the_windows() -> None:
    """As a Swin transformer masks each window: [1, 6, 4] becomes two windows of three."""
    source = text(
        "float[1,6,4] x", "float[1,6,4] y",
        "a = Reshape(x, k) b = Attention(a, a, a, masks) c = Transpose<perm=[0,2,1,3]>(b) y = Reshape(c, j)",
        "int64[4] k = {2, 1, 3, 4}, int64[3] j = {1, 6, 4},"
        " float[2,1,3,3] masks = {0,0,-9,0,0,-9,0,0,-9,-9,0,0,-9,0,0,-9,0,0}", opset=23,
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0], rtol=1e-6)

    assert "'masks' is tiled along axis 0 to N × 2" in reasons
