"""Loops over time iterate to the length of the axis that they read."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import run
from tests.support.repairs import repaired, text

READ = "v = Gather<axis=0>(x, i) t = Add(s, v) o = Relu(t)"
KEPT = "(int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] o)"
COUNTED = "(int64 i, bool c, float[2] s, int32 n) => (bool d, float[2] t, int32 m, float[2] o)"
COMPARED = "one = Constant<value_int=1>() next = Add(i, one)"
WAYS = {
    "rounds": (
        f"h, y = Loop(five, go, z) <body = b {KEPT} {{ d = Identity(c) {READ} }}>", "int64 five = {5}",
    ),
    "rounds in a vector": (
        f"h, y = Loop(five, go, z) <body = b {KEPT} {{ d = Identity(c) {READ} }}>", "int64[1] five = {5}",
    ),
    "a state": (
        f"""h, l, y = Loop(, go, z, five) <body = b {COUNTED} {{
          {COMPARED} k = Cast<to=7>(n) d = Less(next, k) m = Identity(n) {READ} }}>""",
        "int32 five = {5}",
    ),
    "a constant outside": (
        f"h, y = Loop(, go, z) <body = b {KEPT} {{ {COMPARED} d = Less(next, five) {READ} }}>", "int64 five = {5}",
    ),
    "a constant within": (
        f"""h, y = Loop(, go, z) <body = b {KEPT} {{
          {COMPARED} five = Constant<value_int=5>() d = Less(next, five) {READ} }}>""",
        "",
    ),
}  # fmt: skip


def counting(way: str) -> str:
    nodes, constants = WAYS[way]
    go = "float[2] z = {0, 0}, bool go = {1}"
    return text("float[5,2] x", "float[2] h, float[5,2] y", nodes, f"{go}, {constants}" if constants else go)


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_iterates_to_the_end_of_the_axis_it_reads(way: str) -> None:
    result, log = repaired(counting(way), {"x": {0: "T"}})

    assert len(log.changes) == 1
    for length in (5, 3, 9):
        x = np.random.default_rng(length).standard_normal((length, 2)).astype(np.float32)
        total, said = run(result, {"x": x})
        sums = np.add.accumulate(x, 0)
        np.testing.assert_allclose(total, sums[-1], rtol=1e-5)
        np.testing.assert_allclose(said, np.maximum(sums, 0), rtol=1e-5, atol=1e-6)


def test_a_trip_count_that_is_no_index_is_kept() -> None:
    source = text(
        "float[5] x", "float[5] y",
        """y = Loop(five, go, x) <body = b (int64 i, bool c, float[5] s) => (bool d, float[5] t) {
          d = Identity(c) t = Add(s, s) }>""",
        "int64 five = {5}, bool go = {1}",
    )  # fmt: skip

    result, log = repaired(source, {"x": {0: "T"}})

    assert not log.changes
    np.testing.assert_array_equal(run(result, {"x": np.ones(3, np.float32)})[0], np.full(3, 32, np.float32))
