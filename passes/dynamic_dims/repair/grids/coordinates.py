"""Which numbers are coordinates along the rows or the columns of the image, once a grid was added to them.

Constants that hold the size of the image are replaced where coordinates meet them: a limit for boxes, or a factor between
pixels and proportions. A number alone does not show that it is a height. A coordinate that is limited by it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..domain import Array, SampledValue
from ..node_context import NodeContext
from ..tracked import BOTH, combined, over

__all__ = ["track_coordinates"]

_SAME = frozenset(
    {
        "Abs", "BatchNormalization", "Cast", "Ceil", "Clip", "Expand", "Floor", "Identity", "Neg", "Relu", "Round", "Tile",
        "ScatterElements", "ScatterND", "Dropout",
    }
)  # fmt: skip
_COMBINED = frozenset({"Add", "Sub", "Mul", "Div", "Min", "Max", "Sum", "Mean", "Where"})


def track_coordinates(context: NodeContext, outputs: Sequence[SampledValue]) -> None:
    """Record which outputs of a node are coordinates, from those of its inputs."""
    state = context.graph_state
    marks = [state.tracked(name).marks for name in context.node.input]
    if all(mark is None for mark in marks):
        return
    move = _MOVES.get(context.node.op_type)
    for index, name in enumerate(context.node.output):
        mark = (
            _marks(context, marks, index, outputs) if move is None else move(context, marks, index, outputs)
        )
        dims = outputs[index].dims if index < len(outputs) else None
        if mark is not None and mark.any() and dims is not None and mark.ndim == len(dims):
            state.coordinates[name] = mark


def _marks(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    if index:
        return None
    if context.node.op_type in _SAME:
        rank = len(outputs[0].dims or ())
        first = marks[0]
        if first is not None and first.ndim == rank:
            return first
        return None if all(mark is None for mark in marks) else np.full([1] * rank, BOTH)
    if context.node.op_type in _COMBINED:
        rank = len(outputs[0].dims or ())
        shown = [mark for mark in marks if mark is not None and mark.ndim <= rank]
        return combined([mark.reshape([1] * (rank - mark.ndim) + list(mark.shape)) for mark in shown])
    return None


def _concat(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    dims = outputs[0].known
    if dims is None:
        return None
    axis = context.attributes.get("axis", 1) % len(dims)
    # The parts have no fixed place along an axis that varies, so every column may hold every kind of number.
    if dims[axis].varies:
        return combined([over(mark, axis) for mark in marks if mark is not None])
    parts = []
    for at, mark in enumerate(marks):
        own = context.known(at)
        if own is None:
            return None
        shown = mark if mark is not None else np.zeros([1] * len(dims), np.int64)
        shape = list(shown.shape)
        shape[axis] = own[axis].frozen
        parts.append(np.broadcast_to(shown, shape))
    sizes = [max(part.shape[at] for part in parts) for at in range(len(dims))]
    wide = [np.broadcast_to(part, [*sizes[:axis], part.shape[axis], *sizes[axis + 1 :]]) for part in parts]
    return np.concatenate(wide, axis)


def _cut(mark: Array, axis: int, start: int, end: int, step: int = 1) -> Array:
    if mark.shape[axis] == 1:
        return mark
    cuts = [slice(None)] * mark.ndim
    cuts[axis] = slice(start, end if end < 2**31 else None, step)
    return mark[tuple(cuts)]


def _slice(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    mark, attributes = marks[0], context.attributes
    if mark is None:
        return None
    if "starts" in attributes:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes"), None
    else:
        read = [context.integers(at) for at in range(1, 5)]
        # If the cut columns are unknown, a number may lie along either axis.
        if read[0] is None or read[1] is None:
            return combined([mark]) if mark.size == 1 else np.full([1] * mark.ndim, BOTH)
        starts, ends = read[0].tolist(), read[1].tolist()
        axes, steps = (None if each is None else each.tolist() for each in read[2:])
    for at, (start, end) in enumerate(zip(starts, ends, strict=False)):
        axis = (axes[at] if axes else at) % mark.ndim
        mark = _cut(mark, axis, start, end, steps[at] if steps else 1)
    return mark


def _split(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    mark = marks[0]
    if mark is None:
        return None
    axis = context.attributes.get("axis", 0) % mark.ndim
    lengths = [output.known[axis].frozen if output.known else 0 for output in outputs]
    return _cut(mark, axis, sum(lengths[:index]), sum(lengths[: index + 1]))


def _gather(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    mark, indices = marks[0], context.constant(1)
    if mark is None:
        return None
    axis = context.attributes.get("axis", 0) % mark.ndim
    if indices is not None and mark.shape[axis] > 1:
        return np.asarray(np.take(mark, indices, axis))
    rank = len(outputs[0].dims or ())
    flat = np.squeeze(over(mark, axis), axis)
    extra = rank - flat.ndim
    return flat.reshape((*flat.shape[:axis], *[1] * extra, *flat.shape[axis:])) if extra >= 0 else None


def _gather_elements(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    mark = marks[0]
    return None if mark is None else over(mark, context.attributes.get("axis", 0) % mark.ndim)


def _gather_nd(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    mark, rank = marks[0], len(outputs[0].dims or ())
    if mark is None:
        return None
    last = mark.shape[-1] if rank and mark.shape[-1] > 1 else 1
    columns = combined(list(mark.reshape(-1, last)))
    return columns.reshape([1] * (rank - 1) + [last]) if last > 1 else np.full([1] * rank, int(columns[0]))


def _transpose(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    return None if marks[0] is None else np.transpose(marks[0], context.attributes.get("perm"))


def _reshaped(
    context: NodeContext, marks: list[Array | None], index: int, outputs: Sequence[SampledValue]
) -> Array | None:
    """Return the marks after a change of shape: columns that differ stay along an axis of the same length."""
    mark, dims = marks[0], outputs[0].dims
    if mark is None or dims is None:
        return None
    long_axes = [axis for axis, size in enumerate(mark.shape) if size > 1]
    if len(set(mark.reshape(-1).tolist())) == 1:
        return np.full([1] * len(dims), int(mark.reshape(-1)[0]))
    if len(long_axes) == 1:
        size = mark.size
        fitting = [
            at for at, dim in enumerate(dims) if dim is not None and not dim.varies and dim.frozen == size
        ]
        if fitting:
            shape = [1] * len(dims)
            # Columns come last in most layouts, and mostly move with the axes behind them.
            shape[fitting[-1] if long_axes[0] == mark.ndim - 1 else fitting[0]] = size
            return mark.reshape(shape)
    return np.full([1] * len(dims), BOTH)


_Move = Callable[[NodeContext, "list[Array | None]", int, "Sequence[SampledValue]"], "Array | None"]

_MOVES: dict[str, _Move] = {
    "Concat": _concat,
    "Slice": _slice,
    "Split": _split,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Transpose": _transpose,
    "Reshape": _reshaped,
    "Squeeze": _reshaped,
    "Unsqueeze": _reshaped,
    "Flatten": _reshaped,
}
