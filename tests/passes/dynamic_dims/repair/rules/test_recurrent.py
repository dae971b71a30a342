"""Initial states and sequence lengths of recurrent operators follow the batch and the time axis."""

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
