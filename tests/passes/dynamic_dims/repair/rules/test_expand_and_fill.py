"""Lengths in constants that are found when a later node is in conflict with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import run
from tests.support.repairs import check_items, repaired, text


def ran(source: str, dynamic: str, shape: tuple[int, ...]) -> tuple[Any, Any]:
    result, log = repaired(source, dynamic)
    assert log.changes
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return x, run(result, {"x": x})[0]


def test_an_expand_follows_the_length_it_is_added_to() -> None:
    source = text(
        "float[1,5,2] x", "float[1,5,3] y", "e = Expand(row, k) y = Concat<axis=2>(x, e)",
        "float[1,1,1] row = {7}, int64[3] k = {1, 5, 1}",
    )  # fmt: skip

    x, y = ran(source, "x:N,T,2", (2, 9, 2))

    np.testing.assert_array_equal(y, np.concatenate([x, np.full((2, 9, 1), 7, np.float32)], 2))


def test_an_expand_keeps_the_varying_axes_of_its_data() -> None:
    source = text(
        "float[2,1,5] x", "float[2,4,5] y", "y = Expand(x, k)", "int64[3] k = {2, 4, 5}"
    )  # fmt: skip

    x, y = ran(source, "x:N,1,T", (3, 1, 9))

    np.testing.assert_array_equal(y, np.broadcast_to(x, (3, 4, 9)))


def test_equal_rows_for_a_frozen_batch_are_stretched_to_any() -> None:
    """A state of an LSTM that was traced with two items: zeros for two, expanded to as many as there are."""
    source = text(
        "float[2,3] x", "float[2,3] y",
        """n = Shape<end=1>(x) three = Constant<value_ints=[3]>() k = Concat<axis=0>(n, three) h = Expand(rows, k)
        y = Add(x, h)""", "float[2,3] rows = {1, 2, 3, 1, 2, 3}",
    )  # fmt: skip

    x, y = ran(source, "x:N,3", (5, 3))

    np.testing.assert_array_equal(y, x + np.array([1, 2, 3], np.float32))


def test_a_number_that_equals_a_length_by_chance_is_kept() -> None:
    source = text(
        "float[1,5,5] x", "float[1,5,5] y", "e = Expand(row, k) y = MatMul(x, w) z = Mul(e, e)",
        "float[1,1] row = {7}, int64[2] k = {5, 5}, float[5,5] w = {" + ",".join("1" * 25) + "}",
    )  # fmt: skip

    _, log = repaired(source, "x:N,T,5")

    assert not log.changes


@pytest.mark.parametrize("opset", [11, 17])
def test_constant_of_shape_range_and_tile_follow_a_length(opset: int) -> None:
    source = text(
        "float[1,5] x", "float[1,5] y",
        """z = ConstantOfShape<value = float[1] {2}>(k) r = Range(zero, five, one) f = Cast<to=1>(r)
        t = Tile(row, reps) a = Add(x, z) b = Add(a, f) y = Add(b, t)""",
        "int64[2] k = {1, 5}, int64 zero = {0}, int64 five = {5}, int64 one = {1}, float[1,1] row = {3}, int64[2] reps = {1, 5}",
        opset,
    )  # fmt: skip

    x, y = ran(source, "x:N,T", (2, 9))

    np.testing.assert_allclose(y, x + 2 + np.arange(9) + 3, rtol=1e-6)


def test_a_causal_mask_follows_on_both_axes() -> None:
    source = text(
        "float[1,5,2] x", "float[1,5,5] y",
        """t = Transpose<perm=[0,2,1]>(x) s = MatMul(x, t) o = ConstantOfShape<value = float[1] {1}>(k)
        m = Trilu<upper=0>(o) y = Mul(s, m)""",
        "int64[2] k = {5, 5}",
    )  # fmt: skip

    x, y = ran(source, "x:N,T,2", (2, 7, 2))

    np.testing.assert_allclose(y, np.tril(x @ x.transpose(0, 2, 1)), rtol=1e-5)


def test_zeros_for_a_batch_of_one_broadcast_as_one_row() -> None:
    source = text(
        "float[1,3] x",
        "float[1,5] y",
        "z = ConstantOfShape(k) y = Concat<axis=1>(x, z)",
        "int64[2] k = {1, 2}",
    )

    check_items(source, {"x": 0}, [0])


def test_the_limit_of_a_range_follows_a_length() -> None:
    source = text(
        "float[1,5,1] x", "float[1,5,1] y", "p = Gather(table, k) y = Add(x, p)",
        "int64[1,5] k = {0, 1, 2, 3, 4}, float[9,1] table = {9, 8, 7, 6, 5, 4, 3, 2, 1}",
    )  # fmt: skip

    x, y = ran(source, "x:N,T,1", (2, 7, 1))

    np.testing.assert_array_equal(y, x + np.arange(9, 2, -1, dtype=np.float32)[:, None])
