"""Expand, Tile, ConstantOfShape and Range, whose constants hold a length that moves.

A constant alone does not say whether its 12 is the length of a sentence or a number of heads. It is taken for the
number it is until a later node contradicts that.
"""

from __future__ import annotations

from itertools import product as combinations

from ..domain import Dim
from ..graph_state import UnknownLength
from ..node_context import NodeContext

__all__ = ["choose_entries", "constant_of_shape", "expand", "range_", "tile"]

_MOST = 8


def expand(context: NodeContext) -> None:
    """Let axes of the data that move stay as they are, and others follow what contradicts them."""
    x, shape = context.input(0), context.entries(1)
    dims = x.dims if x is not None else None
    if dims is None or shape is None:
        return
    entries = list(shape)
    offset = len(entries) - len(dims)
    for axis, dim in enumerate(dims):
        at = axis + offset
        if at >= 0 and dim is not None and dim.varies and entries[at] == dim.frozen and dim.frozen != 1:
            entries[at] = 1  # which keeps the data's
    fixed = [at for at, size in enumerate(entries) if at >= offset and _fixed(dims[at - offset])]
    fixed += list(range(max(offset, 0)))
    entries = choose_entries(context, entries, sorted(set(fixed)))
    if entries != shape:
        context.write_shape(1, entries, _reason(context, "shape", shape, entries))


def _fixed(dim: Dim | None) -> bool:
    return dim is not None and dim.frozen == 1 and not dim.varies


def tile(context: NodeContext) -> None:
    """Let a repeat of an axis of length 1 follow what contradicts it."""
    x, repeats = context.input(0), context.entries(1)
    if x is None or x.dims is None or repeats is None or len(repeats) != len(x.dims):
        return
    fixed = [axis for axis, dim in enumerate(x.dims) if _fixed(dim)]
    entries = choose_entries(context, repeats, fixed)
    if entries != repeats:
        context.write_shape(1, entries, _reason(context, "repeats", repeats, entries))


def constant_of_shape(context: NodeContext) -> None:
    """Let entries follow what contradicts them."""
    shape = context.entries(0)
    if shape is None:
        return
    entries = choose_entries(context, shape, list(range(len(shape))))
    if entries != shape:
        context.write_shape(0, entries, _reason(context, "shape", shape, entries))


def range_(context: NodeContext) -> None:
    """Let the end follow what contradicts it."""
    start, limit, delta = (context.integers(index) for index in range(3))
    if limit is None or start is None or delta is None or limit.ndim or start.item() or delta.item() != 1:
        return
    entry = choose_entries(context, [limit.item()], [0])[0]
    if isinstance(entry, Dim):
        try:
            name = context.graph_state.emit_length(context.rw, entry, limit)
        except UnknownLength:
            context.refuse("no value before it is as long as it must become", 1)
        context.set_input(1, name, f"limit {limit.item()} → {context.name_of(entry)}")
        from ..node_context import lengths_value

        value = lengths_value([entry], context.assignments)
        data = tuple(array.reshape(()).astype(limit.dtype) for array in value.data or ())
        value.dtype, value.dims, value.data = _kind(limit), (), data
        context.inputs[1] = value


def _kind(array: object) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(array.dtype))  # type: ignore[attr-defined]


def choose_entries(
    context: NodeContext, entries: list[int | Dim], axes: list[int], label: str = ""
) -> list[int | Dim]:
    """Return the entries, those of `axes` as numbers or as a moving length that was as long.

    `label` stands for the place where several such are asked for at one.
    """
    options: list[list[int | Dim]] = []
    for axis, entry in enumerate(entries):
        varying = (
            context.graph_state.varying_dims(entry)
            if isinstance(entry, int) and axis in axes and entry > 1
            else []
        )
        # Who counts to 12 counts to a length, and not to lengths of all items.
        options.append(
            [entry, *([dim for dim in varying if not context.assignments.carries_batch(dim)] or varying)]
        )
    if all(len(each) == 1 for each in options):
        return entries
    every = [list(way) for way in combinations(*(each[:3] for each in options))]
    # All that may follow do, before only some of them do.
    kept, rest = every[0], sorted(every[1:], key=lambda way: -sum(isinstance(entry, Dim) for entry in way))
    ways = [kept, *rest][:_MOST]
    return ways[
        context.hypotheses.choose(label or context.label, (context.node.op_type, str(entries)), len(ways))
    ]


def _reason(context: NodeContext, what: str, before: list[int | Dim], entries: list[int | Dim]) -> str:
    return f"{what} {context.text(before)} → {context.text(entries)}"
