"""Means and maxima over all spatial axes as the pools that compute the same."""

from __future__ import annotations

from onnx import TensorProto

from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["POOLS", "write_global_pool"]

POOLS = {"ReduceMax": "GlobalMaxPool", "ReduceMean": "GlobalAveragePool"}
"""The pool that reduces over all axes from the third on."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)


def write_global_pool(rw: LoweringRewriter) -> str | None:
    """Write a ReduceMean or ReduceMax over all axes from the third on as a global pool, with Flatten if it drops them.

    Returns None: other nodes stay. The runtime chooses the order in which it sums a mean, so the result may round otherwise.
    """
    source = rw.input(0)
    shape, axes_input = rw.shape(source), rw.input(1)
    # Reductions accept integers too, and the global pools do not.
    if shape is None or len(shape) < 3 or rw.dtype(source) not in _FLOATS:
        return None
    stated_axes = rw.known(axes_input) if axes_input else rw.get("axes")
    axes = sorted(int(axis) % len(shape) for axis in stated_axes) if stated_axes is not None else []
    if axes != list(range(2, len(shape))):
        return None
    operator, pool = rw.node.op_type, POOLS[rw.node.op_type]
    if rw.get("keepdims", 1):
        rw.become(pool, [source])
    else:
        # A global pool keeps the reduced axes.
        rw.become("Flatten", [rw.before(pool, [source])], axis=1)
    rw.note(f"{operator} over all spatial axes is a {pool}", Exactness.EQUIVALENT)
    return None
