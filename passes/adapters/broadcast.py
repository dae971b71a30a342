"""Binary operators: from broadcasting by the attributes `axis` and `broadcast` to that of NumPy (opset 7)."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Gemm", 6, reason="only the description changed")


@adapter("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor", to=7)
def broadcast_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The second operand is extended by trailing axes of length 1, in place of the attribute `axis`.

    What changes: `broadcast` and `axis` were removed. Without `axis` the shapes were aligned at the last axis, as in
    NumPy, and the node is unchanged.

    Limits: where the rank of the first operand is unknown, the second is reshaped at run time; where its own rank is
    unknown too, that takes operators of opset 10.
    """
    axis = rw.pop("axis")
    if rw.pop("broadcast", 0) and axis is not None:
        node.input[1] = _align(rw, node.input[0], node.input[1], axis)


@adapter("Gemm", to=7)
def gemm_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`broadcast` was removed: C is always broadcast, aligned at the last axis as before."""
    rw.drop("broadcast")


@adapter("PRelu", to=7)
def prelu_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """A slope per channel is extended by an axis of length 1 for every axis after the channels.

    Why equal: before opset 7 a slope had one element, or one per channel (axis 1); from opset 7 on it is broadcast,
    aligned at the input's last axis.
    """
    slope = rw.shape(node.input[1])
    if slope is None or (len(slope) == 1 and slope != (1,)):
        node.input[1] = _align(rw, node.input[0], node.input[1], 1)


def _align(rw: Rewriter, value: str, operand: str, axis: int) -> str:
    """Return `operand`, whose first axis is aligned with `axis` of `value`, with trailing axes of length 1, so that the last
    axes are aligned."""
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
