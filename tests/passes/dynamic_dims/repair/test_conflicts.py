"""Interpretations under which items of a batch would mix, or weights would not fit, are conflicts."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.support.repairs import check_items, repaired, text


@pytest.mark.parametrize(
    "mix",
    [
        "s = Softmax<axis=0>(a)",
        "s = ReduceMean<axes=[0], keepdims=1>(a)",
        "t = Transpose<perm=[1,2,0]>(a) u = Transpose<perm=[1,0,2]>(a) s = MatMul(t, u)",
        "s = CumSum(a, zero)",
    ],
)
def test_the_batch_is_not_put_where_items_would_mix(mix: str) -> None:
    """[1, 1, 4]: the batch may be either axis; along the first, items would mix."""
    source = text(
        "float[1,4] x", "float[1,1,4] y, float[p,q,r] s", f"a = Reshape(x, k) {mix} y = Identity(a)",
        "int64[3] k = {1, 1, 4}, int64 zero = {0}",
    )  # fmt: skip

    _, log = repaired(source, {"x": {0: "N"}})

    assert "axis 1 is N" in log.changes[0].reason


def test_a_node_that_mixes_under_every_interpretation_does_not_change_the_first() -> None:
    source = text(
        "float[1,4] x", "float[1,1,4] y, float s", "a = Reshape(x, k) s = ReduceMax<keepdims=0>(a) y = Identity(a)",
        "int64[3] k = {1, 1, 4}",
    )  # fmt: skip

    _, log = repaired(source, {"x": {0: "N"}})

    assert "axis 0 is N" in log.changes[0].reason


def test_the_batch_is_not_put_on_the_channels_of_weights() -> None:
    source = text(
        "float[1,1,4] x", "float[1,2,4] y", "a = Reshape(x, k) y = Conv(a, w)",
        "int64[3] k = {1, 1, 4}, float[2,1,1] w = {1, 2}",
    )  # fmt: skip

    check_items(source, {"x": 0}, [0])


def test_weights_of_a_fixed_length_are_named() -> None:
    source = text("float[4,1] x", "float[4,2] y", "y = Gemm(x, w)", "float[1,2] w = {1, 2}")

    with pytest.raises(CannotMigrate) as caught:
        repaired(source, {"x": {1: "K"}})

    assert "Gemm" in str(caught.value)
    assert "'w'" in str(caught.value)


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="onnx is older")
def test_the_batch_of_an_attention_is_that_of_its_query() -> None:
    """The keys, [1, 1, 3, 4]: were the batch taken for the axis of heads there, query and keys would not fit."""
    source = text(
        "float[1,3,4] x", "float[1,1,3,4] y",
        "q = Unsqueeze(x, one) h = Reshape(x, k) y = Attention(q, h, h)",
        "int64[1] one = {1}, int64[4] k = {-1, 1, 3, 4}", opset=23,
    )  # fmt: skip
    check_items(source, {"x": 0}, [0], rtol=1e-6)

    other = source.replace("-1, 1, 3, 4", "1, -1, 3, 4")
    result, reasons = check_items(other, {"x": 0}, [0], rtol=1e-6)
    assert result.graph.node
    assert any("axis 0 is N" in reason for reason in reasons)
