"""CausalConvWithState: a Conv of what was cached and what is new."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, size_of

_END = np.iinfo(np.int64).max


@lowering("CausalConvWithState", leaves=27, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def causal_conv_with_state_27_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The cached positions are put in front of the new ones, and a Conv with a group for each channel does the rest.

    What changes: Concat, Conv, for silu Sigmoid and Mul in float, and a Slice for the state.

    Why equal: the function body of the standard. Measured against onnx.reference: 1e-6.

    Limits: the element type and the number of channels must be known.
    """
    data, weight = rw.input(0), rw.input(1)
    dtype = rw.need_dtype(data)
    padded = rw.before("Concat", [rw.input(3) or _zeros(rw, dtype), data], hint="padded", axis=2)
    if rw.output(1):
        bounds = [size_of(rw, data, 2), integers(rw, _END), integers(rw, 2)]
        rw.after("Slice", [padded, *bounds], [rw.output(1)])
    inputs = [padded, weight, *([rw.input(2)] if rw.input(2) else [])]
    if rw.get("activation", "none") == "none":
        rw.after("Conv", inputs, [rw.output(0)], group=_channels(rw))
    else:
        result = cast(rw, rw.before("Conv", inputs, hint="convolved", group=_channels(rw)), TensorProto.FLOAT)
        gate = rw.before("Sigmoid", [result], hint="gate")
        if dtype == TensorProto.FLOAT:
            rw.after("Mul", [result, gate], [rw.output(0)])
        else:
            rw.after("Cast", [rw.before("Mul", [result, gate], hint="gated")], [rw.output(0)], to=dtype)
    rw.remove()


def _channels(rw: LoweringRewriter) -> int:
    for value, axis in ((rw.input(0), 1), (rw.input(1), 0)):
        shape = rw.shape(value)
        if shape is not None and (size := shape[axis]) is not None:
            return size
    return rw.need_static(rw.input(1))[0]


def _zeros(rw: LoweringRewriter, dtype: int) -> str:
    """Return zeros for as many positions as the kernel looks back."""
    behind = rw.before("Sub", [size_of(rw, rw.input(1), 2), integers(rw, 1)], hint="behind")
    sizes = [size_of(rw, rw.input(0), 0), integers(rw, _channels(rw)), behind]
    zero = numpy_helper.from_array(np.zeros(1, helper.tensor_dtype_to_np_dtype(dtype)))
    return rw.before("ConstantOfShape", [rw.before("Concat", sizes, axis=0)], hint="zeros", value=zero)
