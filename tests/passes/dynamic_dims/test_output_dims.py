"""Dims of outputs, measured by shape inference at several sizes."""

from __future__ import annotations

from onnx_migrate.passes.dynamic_dims.output_dims import symbolic_outputs

from tests.harness import model
from tests.support.repairs import text

POOLED = text(
    "float[N,1,H] x", "float[p,q,r] y, float[s,t,u] z",
    """p = Shape(x) a = Reshape(x, p) y = Relu(a) z = MaxPool<kernel_shape=[2], strides=[2]>(y)""",
)  # fmt: skip


def test_an_axis_as_long_as_one_symbol_at_all_sizes_is_that_symbol() -> None:
    found = symbolic_outputs(model(POOLED), {"N": 1, "H": 8}, {"N"})

    assert found.dims["y"] == ("N", 1, "H")


def test_an_axis_computed_from_a_symbol_is_unknown() -> None:
    found = symbolic_outputs(model(POOLED), {"N": 1, "H": 8}, {"N"})

    assert found.dims["z"] == ("N", 1, "H//2")
    assert found.computed == {"H": [("z", 2)]}


def test_a_size_that_the_network_does_not_take_is_left_out() -> None:
    """Split into 2 equal parts takes even lengths only; the odd samples fail."""
    source = text(
        "float[H] x", "float[p] y",
        """s = Shape(x) w = Reshape(x, k) r = Transpose<perm=[1,0]>(w) y = Reshape(r, s)""",
        "int64[2] k = {2, -1}",
    )  # fmt: skip

    assert symbolic_outputs(model(source), {"H": 8}, set()).dims == {"y": ("H",)}
