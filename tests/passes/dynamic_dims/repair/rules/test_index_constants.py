"""Constant positions are computed for any length where a later node is in conflict without that."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import run
from tests.support.repairs import repaired, text

TABLE = "float[9,2] table = {0,0, 1,1, 2,2, 3,3, 4,4, 5,5, 6,6, 7,7, 8,8}"


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ("p = Gather<axis=0>(table, k) y = Add(x, p)", "int64[1,5] k = {0,1,2,3,4}"),
        ("q = Add(k, zero) p = Gather<axis=0>(table, q) y = Add(x, p)", "int64[1,5] k = {0,1,2,3,4}, int64 zero = {0}"),
        (
            "row = GatherElements<axis=1>(buffer, k) p = Gather<axis=0>(table, row) y = Add(x, p)",
            "int64[1,5] k = {0,1,2,3,4}, int64[1,9] buffer = {0,1,2,3,4,5,6,7,8}",
        ),
        ("p = Cast<to=1>(k) q = Unsqueeze(p, last) y = Add(x, q)", "int32[1,5] k = {0,1,2,3,4}, int64[1] last = {-1}"),
    ],
)  # fmt: skip
def test_positions_are_computed_where_a_later_node_needs_it(nodes: str, constants: str) -> None:
    if "Cast" in nodes:
        nodes = nodes.replace("Cast<to=1>(k)", "Cast<to=1>(j)").replace("p = ", "j = Mul(k, one) p = ", 1)
        constants += ", int32 one = {1}"
    source = text("float[1,5,2] x", "float[1,5,2] y", nodes, f"{TABLE}, {constants}")

    result, log = repaired(source, {"x": {1: "T"}})

    assert "0, 1, …, 4 → 0, 1, …, T - 1" in log.changes[0].reason
    for length in (5, 3, 8):
        y = run(result, {"x": np.zeros((1, length, 2), np.float32)})[0]
        np.testing.assert_array_equal(y[0, :, 0], np.arange(length, dtype=np.float32))


def test_positions_of_a_causal_mask_follow_on_both_axes() -> None:
    """Rows and columns are both counted, and only one of them is asked for by what follows."""
    source = text(
        "float[1,4,4] x", "float[1,4,4] y",
        "m = LessOrEqual(columns, rows) y = Where(m, x, none)",
        "int64[4,1] rows = {0,1,2,3}, int64[1,4] columns = {0,1,2,3}, float none = {-9}",
    )  # fmt: skip

    result, _ = repaired(source, {"x": {1: "T", 2: "T"}})

    y = run(result, {"x": np.zeros((1, 6, 6), np.float32)})[0]
    np.testing.assert_array_equal(y[0], np.where(np.tri(6, dtype=bool), 0, -9).astype(np.float32))


def test_one_repeated_number_is_expanded() -> None:
    """Types of tokens, all 1."""
    source = text(
        "float[1,5,2] x",
        "float[1,5,2] y",
        "p = Gather<axis=0>(table, k) y = Add(x, p)",
        f"{TABLE}, int64[1,5] k = {{1,1,1,1,1}}",
    )

    result, log = repaired(source, {"x": {1: "T"}})

    assert "1 repeated 5 times → T times" in log.changes[0].reason
    np.testing.assert_array_equal(
        run(result, {"x": np.zeros((1, 7, 2), np.float32)})[0], np.ones((1, 7, 2), np.float32)
    )


def test_positions_without_a_conflict_are_kept() -> None:
    source = text(
        "float[1,5,2] x", "float[1,5,2] y, float[1,5,2] z", "p = Gather<axis=0>(table, k) z = Relu(p) y = Relu(x)",
        f"{TABLE}, int64[1,5] k = {{0,1,2,3,4}}",
    )  # fmt: skip

    _, log = repaired(source, {"x": {1: "T"}})

    assert not log.changes
