"""Slices and splits of varying axes."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import run
from tests.support.repairs import check_items, repaired, text


@pytest.mark.parametrize("end", [1, 2, 1000])
def test_a_slice_of_the_whole_batch_takes_the_whole_batch(end: int) -> None:
    source = text(
        "float[1,4] x", "float[1,2] y", "y = Slice(x, b, e, a)",
        f"int64[2] b = {{0, 1}}, int64[2] e = {{{end}, 3}}, int64[2] a = {{0, 1}}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_a_slice_of_a_table_ends_at_the_length_it_is_added_to() -> None:
    table = ",".join(map(str, range(20)))
    source = text(
        "float[1,5] x", "float[1,5] y", "p = Slice(t, b, e, a) y = Add(x, p)",
        f"float[1,20] t = {{{table}}}, int64[1] b = {{0}}, int64[1] e = {{5}}, int64[1] a = {{1}}",
    )  # fmt: skip

    result, log = repaired(source, "x:N,T")

    x = np.zeros((2, 9), np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], np.tile(np.arange(9, dtype=np.float32), (2, 1)))
    assert "ends [5] → [T]" in log.changes[0].reason


def test_a_slice_that_drops_the_last_element_drops_the_last_at_any_length() -> None:
    """A length less one, as of an odd axis that was padded, is found by what it is joined with."""
    source = text(
        "float[1,1,6] x", "float[1,2,5] y",
        "p = Slice(x, b, e, a) q = Slice(x, c, m, a) y = Concat<axis=1>(p, q)",
        "int64[1] b = {0}, int64[1] e = {5}, int64[1] a = {2}, int64[1] c = {1}, int64[1] m = {9223372036854775807}",
    )  # fmt: skip

    result, _ = repaired(source, "x:N,1,W")

    x = np.random.default_rng(0).standard_normal((2, 1, 9)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], np.concatenate([x[:, :, :-1], x[:, :, 1:]], 1))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_equal_parts_are_equal_at_any_size(opset: int) -> None:
    given, constants = ("x", "") if opset == 11 else ("x, k", "int64[2] k = {3, 3}")
    form = "<axis=1, split=[3, 3]>" if opset == 11 else "<axis=1>"
    source = text(
        "float[1,6] x", "float[1,3] y", f"p, q = Split{form}({given}) y = Add(p, q)", constants, opset
    )

    result, _ = repaired(source, "x:N,W")

    x = np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], x[:, :4] + x[:, 4:])


def test_unequal_parts_are_refused() -> None:
    source = text(
        "float[1,6] x", "float[1,2] y, float[1,4] z", "y, z = Split<axis=1>(x, k)", "int64[2] k = {2, 4}"
    )

    with pytest.raises(CannotMigrate, match="'k'"):
        repaired(source, "x:N,W")
