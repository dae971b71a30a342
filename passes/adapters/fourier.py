"""DFT: its axis became an input (opset 20)."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.registry import adapter
from onnx_migrate.rewrite.rewriter import Rewriter


@adapter("DFT", to=20)
def dft_20(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` moves from an attribute to an input, and is set to its old default 1 if it was omitted; the new one is -2."""
    if rw.attribute("axis") is None:
        rw.set_input(2, rw.constant(np.array(1, np.int64), "axis"))
    rw.attribute_to_input("axis", 2)
