"""CausalConvWithState below opset 27, against onnx.reference."""

from __future__ import annotations

import pytest

from tests.passes.lowerings.test_linear_attention import check


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("past", [True, False])
@pytest.mark.parametrize("kernel", [1, 3])
def test_causal_convolution(activation: str, past: bool, kernel: int) -> None:
    state = f", float[2,4,{kernel - 1}] p" if past else ""
    source = f"""<ir_version: 13, opset_import: ["": 27]> graph (float[2,4,5] x, float[4,1,{kernel}] w, float[4] b{state})
        => (float[2,4,5] y, float[2,4,{kernel - 1}] s)
        {{ y, s = CausalConvWithState<activation = "{activation}"> (x, w, b{", p" if past else ""}) }}"""
    unknown = {"symbolic": "needs-shape", "unranked": "needs-shape"}
    check(source, 26, 17, 11, 9, refused=unknown)


def test_causal_convolution_of_half_floats() -> None:
    source = """<ir_version: 13, opset_import: ["": 27]>
        graph (float16[2,4,5] x, float16[4,1,3] w) => (float16[2,4,5] y, float16[2,4,2] s)
        { y, s = CausalConvWithState<activation = "silu"> (x, w) }"""
    check(source, 26, 13, tolerance=5e-3, refused={"symbolic": "needs-shape", "unranked": "needs-shape"})


def test_channels_of_fixed_weights_are_enough() -> None:
    source = """<ir_version: 13, opset_import: ["": 27]> graph (float[N,C,L] x) => (float[N,C,L] y, float[N,C,K] s)
        <float[3,1,2] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> { y, s = CausalConvWithState (x, w) }"""
    check(source, 26, 13, variants=("plain", "if"))
