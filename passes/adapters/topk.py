"""TopK: k became an input (opset 10)."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible(
    "TopK", 11, reason="largest and sorted were added; their defaults are the behaviour of older versions"
)
compatible("TopK", 24, reason="more types are allowed")


@adapter("TopK", to=10)
def topk_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`k` moves from an attribute to an input, a vector of one element."""
    k = rw.attribute("k")
    if k is not None and k.ref_attr_name:
        rw.attribute_to_input("k", 1)
        minus_one = rw.constant(np.array([-1]), "shape")
        rw.set_input(1, rw.before("Reshape", [rw.input(1), minus_one], hint="k"))
    else:
        rw.set_input(1, rw.constant(np.array([rw.pop("k")]), "k"))
