"""Writes axes as counted from the front, for importers that do not count negative axes from the end."""

from __future__ import annotations

import numpy as np

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

__all__ = ["OPERATORS_WITH_AXES", "count_axes_from_the_front"]

_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare",
)  # fmt: skip

_AXIS = (
    "ArgMax", "ArgMin", "Compress", "Concat", "DequantizeLinear", "Flatten", "Gather", "GatherElements", "Hardmax",
    "LayerNormalization", "LogSoftmax", "LpNormalization", "OneHot", "QuantizeLinear", "RMSNormalization", "Scatter",
    "ScatterElements", "Softmax", "Split", "TopK", "Unique",
)  # fmt: skip

_AXES = (
    *_REDUCTIONS, "CenterCropPad", "MeanVarianceNormalization", "Pad", "Resize", "Slice", "Squeeze", "Unsqueeze",
)  # fmt: skip

_ATTRIBUTE = {**dict.fromkeys(_AXIS, "axis"), **dict.fromkeys(_AXES, "axes")}
"""The attribute that holds an axis or axes, at some opset. If a node does not have it, the node is not changed."""

_INPUT = {"Slice": 3, "Pad": 3, "Squeeze": 1, "Unsqueeze": 1, "CumSum": 1, **dict.fromkeys(_REDUCTIONS, 1)}
"""The input that holds an axis or axes, at some opset."""

_NEGATIVE_DEFAULTS = {
    ("Softmax", 13), ("LogSoftmax", 13), ("Hardmax", 13), ("LayerNormalization", 1), ("LpNormalization", 1), ("OneHot", 1),
    ("RMSNormalization", 1), ("TopK", 1),
}  # fmt: skip
"""Operators with -1 as the default of their axis, and the first opset with that default."""

OPERATORS_WITH_AXES = frozenset(_ATTRIBUTE) | frozenset(_INPUT)


def count_axes_from_the_front(rw: LoweringRewriter) -> str | None:
    """Write negative axes as the axes that they mean; return the obstacle, or None if none is negative now.

    Importers that want this form do not count negative axes from the end, or fail on them. Most of them know the rank by then.
    A node of unknown rank is therefore a warning, not an error.
    """
    return _attribute(rw) or _input(rw)


def _attribute(rw: LoweringRewriter) -> str | None:
    name = _ATTRIBUTE.get(rw.node.op_type)
    if name is None:
        return None
    attribute = rw.attribute(name)
    if attribute is not None and attribute.ref_attr_name:
        return f"its {name} is set by each call of the function"
    stated_axes = rw.get(name)
    if stated_axes is None:
        # A negative default counts from the end, although the node does not state it.
        since = [opset for operator, opset in _NEGATIVE_DEFAULTS if operator == rw.node.op_type]
        if name != "axis" or not since or rw.version < since[0]:
            return None
        stated_axes = -1
    axes = list(map(int, stated_axes if isinstance(stated_axes, list) else [stated_axes]))
    counted = _counted(rw, axes)
    if counted is None:
        return f"its {name} {axes} cannot be counted from the front, as the number of axes is not known"
    if counted != axes:
        rw.set(name, counted if isinstance(stated_axes, list) else counted[0])
        rw.note("axes are counted from the front")
    return None


def _input(rw: LoweringRewriter) -> str | None:
    index = _INPUT.get(rw.node.op_type)
    value = rw.input(index) if index is not None else ""
    if index is None or not value or (rw.node.op_type == "CumSum" and rw.version < 11):
        return None
    axes_array = rw.known(value)
    if axes_array is None:
        return None  # computed axes stay
    axes = list(map(int, axes_array.reshape(-1)))
    counted = _counted(rw, axes)
    if counted is None:
        return f"its axes {axes} cannot be counted from the front, as the number of axes is not known"
    # Most axes count from the front already.
    if counted != axes:
        rw.set_input(
            index, rw.constant(np.array(counted, axes_array.dtype).reshape(axes_array.shape), "axes")
        )
        rw.note("axes are counted from the front")
    return None


def _counted(rw: LoweringRewriter, axes: list[int]) -> list[int] | None:
    """Return axes counted from the front, None if one is negative and the rank is not known."""
    if all(axis >= 0 for axis in axes):
        return axes
    rank = _rank(rw, len(axes))
    return None if rank is None else [axis % rank if axis < 0 else axis for axis in axes]


def _rank(rw: LoweringRewriter, axes: int) -> int | None:
    """Return the number of axes that those of a node count among."""
    rank = rw.rank(rw.input(0))
    if rank is None and rw.node.op_type in _KEEP_RANK and rw.output(0):
        rank = rw.rank(rw.output(0))
    if rank is None:
        return None
    added = {"Unsqueeze": axes, "OneHot": 1}
    # An axis of a scalar counts as one of a vector, since a division by 0 axes would fail.
    return max(rank + added.get(rw.node.op_type, 0), 1)


_KEEP_RANK = frozenset(
    ("Concat", "Softmax", "LogSoftmax", "Hardmax", "Split", "Slice", "Pad", "CumSum", "LayerNormalization")
)
"""Operators whose output has the rank of their input."""
