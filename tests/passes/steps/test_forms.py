"""What decompositions share has the form of the opset that they are written for."""

from __future__ import annotations

import pytest

from tests.written_out import at, check_written_out, write_out


@pytest.mark.parametrize(("opset", "inputs"), [(7, 1), (13, 3)])
def test_limits_are_attributes_or_inputs(opset: int, inputs: int) -> None:
    result = check_written_out(
        at(opset, "g (float[2] x) => (float[2] y) { y = HardSigmoid (x) }"),
        "HardSigmoid",
        atol=1e-7,
    )
    assert [len(node.input) for node in result.graph.node if node.op_type == "Clip"] == [inputs]


def test_computed_axes_stay_computed_where_the_form_has_them() -> None:
    text = '<ir_version: 8, opset_import: ["": %d]> g (float[2,3] x, int64[1] a) => (float[p,q] y) { y = %s (x, a) }'
    result, _, refused = write_out(text % (18, "ReduceL2"), {"ReduceL2"})
    assert not refused
    assert ["a" in node.input for node in result.graph.node if node.op_type == "ReduceSum"] == [True]
    _, _, (error,) = write_out(text % (18, "ReduceLogSumExp"), {"ReduceLogSumExp"})
    assert error.code == "needs-constant"


def test_a_reduction_that_may_do_nothing_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2,3] x) => (float[2,3] y)
        { y = ReduceL1 <noop_with_empty_axes = 1> (x) }"""
    _, _, (error,) = write_out(text, {"ReduceL1"})
    assert error.code == "no-equal"
    assert "noop_with_empty_axes" in str(error)
