"""Trip counts of loops, and states of recurrent operators."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import run
from tests.support.repairs import check_items, repaired, text

ROWS = ",".join("0.1" if index % 3 else "-0.2" for index in range(36))
WEIGHTS = (
    "float[1,12,2] w = {1,2,3,-1,2,1,2,-3,1,1,2,1,2,3,-1,2,-3,2,1,-2,3,2,1,1}, float[1,12,3] r = {"
    + ROWS
    + "}"
)


@pytest.mark.parametrize(
    "states",
    [
        "",
        "h = ConstantOfShape<value = float[1] {0.5}>(s) c = Identity(h)",
        "z = Constant<value = float[2,1,3] {1,2,3,4,5,6}>() h = Gather<axis=0>(z, first) c = Gather<axis=0>(z, second)",
    ],
)
def test_initial_states(states: str) -> None:
    constants = "int64[3] s = {1, 1, 3}, int64[1] first = {0}, int64[1] second = {1}"
    if not states:
        constants += ", float[1,1,3] h = {1, 2, 3}, float[1,1,3] c = {3, 2, 1}"
    source = text(
        "float[4,1,2] x", "float[4,1,1,3] y, float[1,1,3] yh",
        f"{states} y, yh = LSTM<hidden_size=3>(x, w, r, , , h, c)", f"{constants}, {WEIGHTS}",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 1}, [2, 1])

    assert [node.op_type for node in result.graph.node].count("Expand") == 2
    assert "is expanded along axis 1 to N" in reasons[0]


def test_states_that_are_equal_for_a_frozen_batch_of_two() -> None:
    source = text(
        "float[4,2,2] x", "float[4,1,2,3] y", "y = LSTM<hidden_size=3>(x, w, r, , , h, c)",
        f"float[1,2,3] h = {{1,2,3,1,2,3}}, float[1,2,3] c = {{0,0,0,0,0,0}}, {WEIGHTS}",
    )  # fmt: skip
    result, _ = repaired(source, {"x": {1: "N"}})
    assert [node.op_type for node in result.graph.node].count("Expand") == 2

    with pytest.raises(CannotMigrate, match="2 different rows"):
        repaired(source.replace("{1,2,3,1,2,3}", "{1,2,3,1,2,4}"), {"x": {1: "N"}})


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ({"x": {2: "F"}}, "its weights are for 2 features, but axis 2 of its input 'x' changes with F"),
        ({"x": {1: "N"}, "h": {0: "N"}}, "stands for the directions, but changes with N"),
    ],
)
def test_features_and_directions_stay(dynamic: dict[str, dict[int, str]], message: str) -> None:
    source = text(
        "float[4,1,2] x, float[1,1,3] h, float[1,1,3] c", "float[4,1,1,3] y",
        "y = LSTM<hidden_size=3>(x, w, r, , , h, c)", WEIGHTS,
    )  # fmt: skip
    with pytest.raises(CannotMigrate, match=message):
        repaired(source, dynamic)


REVERSE = text(
    "float[4,1,2] x", "float[4,1,2] y", "y = ReverseSequence<time_axis=0, batch_axis=1>(x, lengths)",
    "int64[1] lengths = {4}",
)  # fmt: skip


def test_sequence_lengths_equal_to_the_time_axis_are_read_from_it() -> None:
    result, _ = repaired(REVERSE, {"x": {0: "T", 1: "N"}})

    x = np.random.default_rng(0).standard_normal((7, 3, 2)).astype(np.float32)
    np.testing.assert_array_equal(run(result, {"x": x})[0], x[::-1])


def test_sequence_lengths_shorter_than_the_time_axis_are_refused() -> None:
    with pytest.raises(CannotMigrate, match="ReverseSequence"):
        repaired(REVERSE.replace("{4}", "{3}"), {"x": {0: "T"}})


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
