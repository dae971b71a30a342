"""Operators of two operands: from the broadcasting of `axis` and `broadcast` to that of NumPy."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Gemm", 6, reason="the description only")


@adapter("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor", to=7)
def broadcast_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The second operand gets the axes of length 1 behind its own that `axis` stood for.

    What changes: `broadcast` and `axis` are gone. Without `axis` the shapes were aligned at the last axis, as
    they are now.

    Limits: where the number of axes is not known, the second operand is shaped at run time, by operators of
    opset 10 if its own number of axes is not known either.
    """
    axis = rw.pop("axis")
    if rw.pop("broadcast", 0) and axis is not None:
        node.input[1] = _align(rw, node.input[0], node.input[1], axis)


@adapter("Gemm", to=7)
def gemm_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`broadcast` is gone: C is always broadcast, aligned at the last axis as before."""
    rw.drop("broadcast")


@adapter("PRelu", to=7)
def prelu_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """A slope per channel gets an axis of length 1 for every axis behind the channels.

    Why equal: before opset 7 a slope had one element or one per channel (axis 1); from then on it is aligned
    with the input's last axis.
    """
    slope = rw.shape(node.input[1])
    if slope is None or (len(slope) == 1 and slope != (1,)):
        node.input[1] = _align(rw, node.input[0], node.input[1], 1)


def _align(rw: Rewriter, value: str, operand: str, axis: int) -> str:
    """Give `operand`, whose first axis is `axis` of `value`, trailing axes so that the last ones meet."""
    rank, own = rw.rank(value), rw.rank(operand)
    if axis == -1:
        return operand
    if axis < 0:
        axis += rw.need_rank(value)
    if rank is not None and own is not None:
        axes = list(range(own, rank - axis))
        return rw.before("Unsqueeze", [operand], hint="aligned", axes=axes) if axes else operand
    shape = rw.before("Shape", [value], hint="shape")
    own_shape = rw.before("Shape", [operand], hint="operand_shape")
    if own is not None:
        tail = rw.before("Slice", [shape], hint="tail", starts=[axis + own], ends=[2**31 - 1])
    elif rw.target >= 10:
        rw.version = 10
        own_rank = rw.before("Shape", [own_shape], hint="operand_rank")
        start = rw.before("Add", [own_rank, rw.constant(np.array([axis]), "axis")], hint="start")
        tail = rw.before("Slice", [shape, start, rw.constant(np.array([2**31 - 1]), "end")], hint="tail")
    else:
        rw.need_rank(operand)
    none = rw.before("Mul", [tail, rw.constant(np.array([0]), "zero")], hint="zeros")
    ones = rw.before("Add", [none, rw.constant(np.array([1]), "one")], hint="ones")
    wanted = rw.before("Concat", [own_shape, ones], hint="aligned_shape", axis=0)
    return rw.before("Reshape", [operand, wanted], hint="aligned")
