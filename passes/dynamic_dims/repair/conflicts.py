"""Conflicts that onnx's inference does not report: operands that do not fit, and nodes that mix the items of a batch.

Each function returns the conflict as a phrase for the refusal, "" if there is none.
"""

from __future__ import annotations

from collections.abc import Callable

from .domain import Dim
from .node_context import NodeContext

__all__ = ["batch_mixing", "broadcast_conflict", "operand_conflict"]


_ELEMENTWISE = frozenset(
    {
        "Add", "Sub", "Mul", "Div", "Pow", "Where", "Min", "Max", "Sum", "And", "Or",
        "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal",
    }
)  # fmt: skip
_SPATIAL = frozenset(
    {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool"}
)


def operand_conflict(context: NodeContext) -> str:
    """Return why a node's weights or states do not fit its input at other sizes."""
    check = _CHECKS.get(context.node.op_type)
    return check(context) if check else ""


def _convolution(context: NodeContext) -> str:
    x, weights = context.dims(0), context.dims(1)
    if x is None or weights is None or len(x) < 2 or x[1] is None or not x[1].varies:
        return ""
    return _fixed_parameters(context, "weights", "input channels", 1, x[1])


def _fixed_parameters(context: NodeContext, parameters: str, what: str, axis: int, dim: Dim) -> str:
    name = context.node.input[0]
    return (
        f"its {parameters} are for {dim.frozen} {what}, but axis {axis} of its input {name!r} changes with"
        f" {context.symbols_in(dim)}"
    )


def _gemm(context: NodeContext) -> str:
    a, b = context.dims(0), context.dims(1)
    if a is None or b is None or len(a) != 2 or len(b) != 2:
        return ""
    inner = 0 if context.attributes.get("transA") else 1
    other = 1 if context.attributes.get("transB") else 0
    left, right = a[inner], b[other]
    if left is None or right is None or left.sizes == right.sizes:
        return ""
    first, second = context.node.input[:2]
    return (
        f"axis {inner} of {context.describe(first)} has the length {context.name_of(left)}, and axis {other} of"
        f" {context.describe(second)} the length {context.name_of(right)}. These must be equal, but are equal only at the"
        " sizes of the export"
    )


def _channels(context: NodeContext) -> str:
    x = context.dims(0)
    if x is None or len(x) < 2 or x[1] is None or not x[1].varies:
        return ""
    operands = [context.dims(index) for index in range(1, len(context.inputs))]
    # The rule of BatchNormalization may have expanded the parameters, which then vary with the channels.
    if all(dims is not None and len(dims) == 1 and dims[0] == x[1] for dims in operands):
        return ""
    return _fixed_parameters(context, "parameters", "channels", 1, x[1])


def _recurrent(context: NodeContext) -> str:
    x = context.dims(0)
    if x is None or len(x) != 3:
        return ""
    if x[2] is not None and x[2].varies:
        return _fixed_parameters(context, "weights", "features", 2, x[2])
    axis = 0 if context.attributes.get("layout", 0) else 1
    batch = x[axis]
    for index in (5, 6):
        state = context.dims(index)
        if state is None or len(state) != 3 or batch is None:
            continue
        name = context.describe(context.node.input[index])
        batch_dim, directions = state[axis], state[1 - axis]
        if directions is not None and directions.varies:
            return (
                f"axis {1 - axis} of its initial state {name} stands for the directions, but changes with"
                f" {context.symbols_in(directions)}"
            )
        if batch_dim is not None and batch_dim.sizes != batch.sizes:
            return (
                f"its input has {context.name_of(batch)} items, but its initial state {name} is for"
                f" {context.name_of(batch_dim)}"
            )
    return ""


def _attention(context: NodeContext) -> str:
    query = context.dims(0)
    for index in (1, 2):
        other = context.dims(index)
        if not query or not other or query[0] is None or other[0] is None or query[0].sizes == other[0].sizes:
            continue
        first, second = context.describe(context.node.input[0]), context.describe(context.node.input[index])
        return f"{first} has {context.name_of(query[0])} items, but {second} has {context.name_of(other[0])}"
    return ""


_CHECKS: dict[str, Callable[[NodeContext], str]] = {
    "Conv": _convolution,
    "ConvTranspose": _convolution,
    "Gemm": _gemm,
    "Attention": _attention,
    "BatchNormalization": _channels,
    "InstanceNormalization": _channels,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
}


def broadcast_conflict(context: NodeContext) -> str:
    """Return which axis of an operand of an element-wise node has a fixed length where another operand's varies."""
    shapes = [value.dims if value is not None else None for value in context.inputs]
    if context.node.op_type not in _ELEMENTWISE or None in shapes:
        return ""
    known_shapes = [(name, dims) for name, dims in zip(context.node.input, shapes, strict=True) if dims]
    for back in range(1, max((len(dims) for _, dims in known_shapes), default=0) + 1):
        along = [(name, len(dims) - back, dims[-back]) for name, dims in known_shapes if len(dims) >= back]
        varying = next(
            ((name, axis, dim) for name, axis, dim in along if dim is not None and dim.varies), None
        )
        for name, axis, dim in along:
            if varying is not None and dim is not None and not dim.varies and dim.frozen != 1:
                other, other_axis, other_dim = varying
                assert other_dim is not None
                return (
                    f"axis {axis} of {context.describe(name)} has the fixed length {dim.frozen}, but axis"
                    f" {other_axis} of {other!r}, which must have the same length, changes with"
                    f" {context.symbols_in(other_dim)}"
                )
    return ""


def batch_mixing(context: NodeContext) -> str:
    """Return over which axis a node computes across the items of a batch."""
    x = context.dims(0)
    if x is None or not any(dim is not None and dim.of_batch for dim in x):
        return ""
    axes = [axis % len(x) for axis in _mixing_axes(context, len(x)) if -len(x) <= axis < len(x)]
    mixed = [(axis, dim) for axis in axes if (dim := x[axis]) is not None and dim.of_batch]
    if not mixed:
        return ""
    axis, batch = mixed[0][0], context.symbols_in(mixed[0][1])
    return (
        f"it computes across axis {axis} of {context.node.input[0]!r}, the axis of the batch ({batch}). The result of"
        " one item would depend on the others"
    )


def _mixing_axes(context: NodeContext, rank: int) -> list[int]:
    """Return the axes of the first input across which the operator computes, as a Softmax does across its `axis`."""
    kind, attributes = context.node.op_type, context.attributes
    if kind in ("Softmax", "LogSoftmax", "Hardmax"):
        axis = attributes.get("axis", -1 if context.rw.version >= 13 else 1)
        # Before opset 13, these operators flatten all axes from `axis` on.
        return [axis] if context.rw.version >= 13 else list(range(axis % max(rank, 1), rank))
    if kind in ("ArgMax", "ArgMin"):
        return [attributes.get("axis", 0)]
    if kind == "TopK":
        return [attributes.get("axis", -1)]
    if kind == "CumSum":
        axis = context.integers(1)
        return [] if axis is None else [int(axis.reshape(-1)[0])]
    if kind.startswith("Reduce"):
        axes = context.integers(1)
        axis_list = axes.tolist() if axes is not None else attributes.get("axes")
        if axis_list:
            return [int(axis) for axis in axis_list]
        no_axes = len(context.node.input) < 2 or not context.node.input[1]
        # Axes that the model computes are unknown here, so they count as none.
        return list(range(rank)) if no_axes and not attributes.get("noop_with_empty_axes") else []
    if kind in _SPATIAL:
        return list(range(1, rank))
    if kind == "MeanVarianceNormalization":
        return list(attributes.get("axes", (0, 2, 3)))
    if kind in ("InstanceNormalization", "GroupNormalization"):
        return list(range(2, rank))
    if kind == "LayerNormalization":
        return list(range(attributes.get("axis", -1) % max(rank, 1), rank))
    if kind in ("LSTM", "GRU", "RNN"):
        return [1, 2] if attributes.get("layout", 0) else [0, 2]
    if kind == "MatMul":
        return [rank - 1]
    if kind == "Attention":
        return [rank - 2, rank - 1]
    if kind == "Gemm":
        return [0 if attributes.get("transA") else 1]
    return []
