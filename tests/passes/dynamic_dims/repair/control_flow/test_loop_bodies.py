"""Loop-carried values that begin without a batch, and Scans."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import run
from tests.support.repairs import check_items, repaired, text

TURN = "trips = Constant<value_int=3>() go = Constant<value = bool {1}>()"
BODY = "(int64 i, bool c, float[1,4] s) => (bool d, float[1,4] t)"


def test_the_initial_value_of_a_state_is_expanded() -> None:
    source = text(
        "float[1,4] x", "float[1,4] y",
        f"{TURN} y = Loop(trips, go, h) <body = b {BODY} {{ d = Identity(c) t = Add(s, x) }}>",
        "float[1,4] h = {0, 1, 2, 3}",
    )  # fmt: skip

    _, reasons = check_items(source, {"x": 0}, [0])

    assert reasons == ["'h' is expanded along axis 0 to N"]


def test_a_state_that_is_written_to_in_each_iteration_is_expanded() -> None:
    """As a decoder keeps what it has found: row i of [1, 4, 2] is set in round i."""
    source = text(
        "float[1,2] x", "float[1,4,2] y",
        f"""{TURN} y = Loop(trips, go, h) <body = b (int64 i, bool c, float[1,4,2] s) => (bool d, float[1,4,2] t) {{
          d = Identity(c) one = Constant<value_ints=[1]>() n = Unsqueeze(x, one)
          zero = Constant<value_ints=[0]>() row = Unsqueeze(i, zero) back = Add(row, one)
          part = Slice(s, row, back, one) like = Shape(part) wide = Expand(n, like)
          k = Constant<value_ints=[1, 1, 1]>() j = Reshape(i, k) where = Expand(j, like)
          t = ScatterElements<axis=1>(s, where, wide) }}>""",
        "float[1,4,2] h = {0, 0, 0, 0, 0, 0, 0, 0}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_a_scan_over_time_carries_the_batch() -> None:
    """x [batch, time, 2] is taken step by step along time; what was said is gathered there again."""
    source = text(
        "float[1,5,2] x", "float[1,2] last, float[1,5,2] y",
        """last, y = Scan<num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1],
          body = b (float[1,2] s, float[1,2] v) => (float[1,2] t, float[1,2] o) {
            k = Constant<value_ints=[1, 2]>() u = Add(s, v) t = Reshape(u, k) o = Relu(t) }>(h, x)""",
        "float[1,2] h = {1, -1}",
    )  # fmt: skip

    result, reasons = check_items(source, {"x": 0}, [0, 0])
    assert len(reasons) == 2

    result, _ = repaired(source, {"x": {0: "N", 1: "T"}})
    x = np.random.default_rng(0).standard_normal((2, 9, 2)).astype(np.float32)
    last, said = run(result, {"x": x})
    assert said.shape == (2, 9, 2)
    np.testing.assert_array_equal(np.maximum(last, 0), said[:, -1])


@pytest.mark.parametrize("axis", [0, 1])
def test_a_scan_over_the_batch_needs_no_repair(axis: int) -> None:
    """The items one after the other: each gives a row, and the state is their sum."""
    shape = "1,2" if axis == 0 else "2,1"
    source = text(
        f"float[{shape}] x", f"float[2] sum, float[{shape}] y",
        f"""sum, y = Scan<num_scan_inputs=1, scan_input_axes=[{axis}], scan_output_axes=[{axis}],
          body = b (float[2] s, float[2] v) => (float[2] t, float[2] o) {{ t = Add(s, v) o = Relu(v) }}>(h, x)""",
        "float[2] h = {0, 0}",
    )  # fmt: skip

    result, log = repaired(source, {"x": {axis: "N"}})

    assert not log.changes
    assert [
        dim.dim_param or dim.dim_value for dim in result.graph.output[1].type.tensor_type.shape.dim
    ].count("N") == 1
