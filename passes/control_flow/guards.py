"""Guards of a branch that the model may not take: they change indices and divisors into ones that every runtime computes with.

If the model takes the branch, its valid indices and divisors stay unchanged; with invalid ones, the original model fails.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.standard.schema import is_onnx

from .evaluate import Evaluator

__all__ = ["INDEXED", "guard", "indexed_sizes"]

_SINCE = 12
"""The first opset in which Min and Max take integers."""

_INTEGERS = (TensorProto.INT32, TensorProto.INT64)


INDEXED = ("Gather", "GatherElements", "GatherND")
"""Operators that fail for an index out of range, which input 1 has."""


def guard(at: Evaluator, node: onnx.NodeProto) -> None:
    """Let a node of a branch read an index within its axis, and a divisor that is not 0, in place; enter it as guarded."""
    if not is_onnx(node.domain) or at.rw.version < _SINCE or node.op_type not in {*INDEXED, "Div", "Mod"}:
        return
    name = node.input[1]
    # A division of floats by 0 does not fail.
    if at.rw.dtype(name) not in _INTEGERS or at.known(name) is not None:
        return
    dtype = helper.tensor_dtype_to_np_dtype(at.rw.dtype(name) or 0)
    value, op = at.value(name), at.op
    if node.op_type in ("Div", "Mod"):
        zero, unit = (at.value(at.stored(np.array(number, dtype))) for number in (0, 1))
        safe = op.Where(op.Equal(value, zero), unit, value)
    else:
        sizes = indexed_sizes(at, node)
        # An axis of length 0 has no valid index.
        if sizes is None or not sizes.all():
            return
        low, high = (at.value(at.stored(bound.astype(dtype))) for bound in (-sizes, sizes - 1))
        safe = op.Max(op.Min(value, high), low)
    node.input[1] = safe.name
    at.guarded.add(safe.name)


def indexed_sizes(
    at: Evaluator, node: onnx.NodeProto
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None:
    """Return the sizes of the axes that a node reads indices of: one, or one for each number of a row of GatherND."""
    shape, indices = at.static(node.input[0]), at.static(node.input[1])
    if shape is None or not shape or indices is None:
        return None
    if node.op_type == "GatherND":
        first = attributes_of(node).get("batch_dims", 0)
        return np.array(shape[first : first + indices[-1]], np.int64) if indices else None
    return np.array(shape[attributes_of(node).get("axis", 0)], np.int64)
