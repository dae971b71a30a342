"""The kernel's shape follows from the weights, for every kind of convolution."""

from __future__ import annotations

from tests.passes.targets.test_fit_forms import fit


def test_transposed_and_one_dimensional_kernels() -> None:
    result, _ = fit(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1,2,5] x, float[2,1,4] w) => (float[1,1,8] y, float[1,1,5] z)
        <float[1,2,1] v = {1.0, 2.0}> { y = ConvTranspose (x, w)  z = Conv <kernel_shape = [1]> (x, v) }""",
        "kernel_shape",
    )
    assert [list(node.attribute[0].ints) for node in result.graph.node] == [[4], [1]]
