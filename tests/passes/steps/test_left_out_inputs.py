"""Inputs that a node leaves out at its end, as names that are empty: older versions with fewer inputs do not load them."""

from __future__ import annotations

import pytest

from tests.steps import check_down

NODES = (
    *(f'Reduce{name}(x, "")' for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")),
    'ReduceSum(x, "")',
    'Clip(x, "", "")',
    'Dropout(x, "", "")',
    'Pad(x, pads, "", "")',
    'Resize<mode = "nearest">(x, "", scales, "")',
    'Slice(x, starts, ends, "", "")',
    'Split<num_outputs = 1>(x, "")',
)  # fmt: skip


@pytest.mark.parametrize("node", NODES)
def test_a_node_of_an_older_version_has_no_inputs_that_it_does_not_take(node: str) -> None:
    source = f"""18 (float[1,3,1,4] x) => (float y)
        <int64[8] pads = {{0,0,1,1,0,0,1,1}}, float[4] scales = {{1.,1.,2.,2.}}, int64[1] starts = {{0}}, int64[1] ends = {{1}}>
        {{ y = {node} }}"""
    result = check_down(source, 9, variants=("plain",))

    assert all(all(item.input) for item in result.graph.node)
