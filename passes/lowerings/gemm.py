"""Gemm: below opset 11 the third input is required."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("Gemm", leaves=11)
def gemm_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`C` is given.

    What changes: where it was left out, a constant is added: a negative zero for floats, a zero for integers.

    Why equal: x + -0 is x for every float, a negative zero included, which + 0 is not.

    Limits: the element type must be known where C is left out.
    """
    if rw.input(2):
        return
    dtype = rw.numpy_type(rw.input(0))
    rw.drop("beta")
    rw.set_input(2, rw.constant(np.array([-0.0 if dtype.kind == "f" else 0]).astype(dtype), "zero"))
