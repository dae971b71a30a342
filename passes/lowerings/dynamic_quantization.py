"""DynamicQuantizeLinear: the range is measured, and QuantizeLinear does the rest."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter


@lowering("DynamicQuantizeLinear", leaves=11)
def dynamic_quantize_linear_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Scale and zero point are computed from the smallest and the largest number; QuantizeLinear rounds both.

    What changes: the node becomes ReduceMin, ReduceMax, Min, Max, Sub, Div and two QuantizeLinears.

    Why equal: the equations of the standard's text; for a tensor of zeros the scale is 1, as in ONNX Runtime's kernel, where
    the function body divides 0 by 0. Bit for bit, but for tensors with a NaN, of which runtimes differ.
    """
    zero, ends, one = (rw.constant(np.array(number, np.float32), "number") for number in (0, 255, 1))
    x = rw.input(0)
    low = rw.before("Min", [rw.before("ReduceMin", [x], keepdims=0), zero], hint="low")
    high = rw.before("Max", [rw.before("ReduceMax", [x], keepdims=0), zero], hint="high")
    size = rw.before("Sub", [high, low], hint="range")
    step = rw.before("Div", [size, ends], hint="step")
    wide = rw.before("Less", [zero, size], hint="is_wide")
    names = [rw.output(index) or rw.fresh("quantized") for index in range(3)]
    rw.after("Where", [wide, step, one], [names[1]])
    below, origin = rw.fresh("below"), rw.fresh("origin")
    rw.after("Div", [low, names[1]], [below])
    rw.after("Sub", [zero, below], [origin])
    rw.after("QuantizeLinear", [origin, one, rw.constant(np.array(0, np.uint8), "zero")], [names[2]])
    rw.after("QuantizeLinear", [x, names[1], names[2]], [names[0]])
    rw.remove()
