"""Conv, ConvTranspose and CausalConvWithState, which is a Conv of what was cached and what is new."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Result, TensorProto, Value, formula
from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.messages import count_of
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Conv", 11, reason="auto_pad and the defaults of strides and dilations are specified")

_END = int(np.iinfo(np.int64).max)


@adapter("ConvTranspose", to=11)
def conv_transpose_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Batch and channels are removed from `output_shape`, which from opset 11 on has spatial axes only.

    Why equal: version 1 leaves open which axes it has, and ONNX Runtime accepts both forms
    (conv_transpose_attributes.h). The text about which end gets an odd pad changed too, but for all versions alike
    (onnx pull request 3440), and so did the runtimes.
    """
    attribute = rw.attribute("output_shape")
    if attribute is None or attribute.ref_attr_name or len(attribute.ints) < 3:
        return
    spatial = _spatial_axes(rw)
    if spatial is None:
        rw.refuse(
            f"output_shape has {count_of(len(attribute.ints), 'element')}, but the number of spatial axes is unknown",
            code="needs-rank",
            hint="declare the shape of the node's input or weights",
        )
    if len(attribute.ints) == spatial + 2:
        rw.set("output_shape", list(attribute.ints[2:]))


def _spatial_axes(rw: Rewriter) -> int | None:
    for value in (rw.input(1), rw.input(0)):
        rank = rw.rank(value)
        if rank is not None:
            return rank - 2
    for name in ("kernel_shape", "strides", "dilations", "output_padding"):
        attribute = rw.attribute(name)
        if attribute is not None and not attribute.ref_attr_name:
            return len(attribute.ints)
    return None


@formula("CausalConvWithState", since=27, exactness=EQUIVALENT, types=LostTypes.OWN)
def causal_conv_with_state(
    op: Op, x: Value, weight: Value, bias: Value | None, past: Value | None, *, activation: str
) -> Result:
    """The cached positions are put in front of the new ones, and a Conv with a group for each channel does the rest.

    Why equal: the function body of the standard. Measured against onnx.reference: 1e-6.

    Limits: the element type and the number of channels must be known.
    """
    dtype = x.need_dtype()
    channels = _channels(x, weight)
    if past is None:  # zeros for as many positions as the kernel looks back
        behind = op.Sub(op.size_of(weight, 2).as_written(), [1])
        zero = numpy_helper.from_array(np.zeros(1, helper.tensor_dtype_to_np_dtype(dtype)))
        past = op.ConstantOfShape(op.Concat(op.size_of(x, 0), [channels], behind, axis=0), value=zero)
    padded = op.Concat(past, x, axis=2)
    state = op.write("Slice", padded, op.size_of(x, 2), [_END], [2]) if op.rw.output(1) else None
    result = op.Conv(padded, weight, bias, group=channels)
    if activation != "none":
        result = result.cast(TensorProto.FLOAT)
        result = (result * op.Sigmoid(result)).cast(dtype)
    return result, state


def _channels(x: Value, weight: Value) -> int:
    for value, axis in ((x, 1), (weight, 0)):
        shape = value.shape
        if shape is not None and (size := shape[axis]) is not None:
            return size
    return weight.need_static()[0]
