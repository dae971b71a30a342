"""Repair rules of Expand, Tile, ConstantOfShape and Range, whose constants may hold a length that varies.

The constant alone does not show whether its 12 is the length of a sentence or a number of heads. The first hypothesis
is that it stays 12; the others, that it follows a length that was 12, are chosen when a later node is in conflict.
"""

from __future__ import annotations

from itertools import product

from ..domain import Dim
from ..domain.value import dtype_of
from ..graph_state import UnknownLength
from ..node_context import NodeContext, lengths_value
from ..operand_edits import keep_one_row

__all__ = ["choose_entries", "constant_of_shape", "expand", "range_", "tile"]

_MAX_OPTIONS = 8
_MAX_LENGTHS = 2
"""The varying lengths that are tried for one entry."""


def expand(context: NodeContext) -> None:
    """Set the entries of varying axes of the data to 1, which keeps their length, and choose the other entries.

    A constant with equal rows along an axis that is to be of a varying length becomes one row, which is stretched.
    """
    shape = context.entries(1)
    dims = context.dims(0)
    if dims is None or shape is None:
        return
    entries = list(shape)
    offset = len(entries) - len(dims)
    for axis, dim in enumerate(dims):
        wanted = entries[axis + offset] if axis + offset >= 0 else 1
        if isinstance(wanted, Dim) and dim is not None and not dim.varies and dim.frozen == wanted.frozen > 1:
            keep_one_row(context, 0, axis)
    dims = context.dims(0) or dims
    for axis, dim in enumerate(dims):
        position = axis + offset
        if position < 0 or dim is None or not dim.varies or dim.frozen == 1:
            continue
        if entries[position] == dim.frozen:
            entries[position] = 1
    new = set(range(max(offset, 0)))
    stretched = {
        position
        for position in range(len(entries))
        if position >= offset and _is_fixed_one(dims[position - offset])
    }
    entries = choose_entries(context, entries, sorted(new | stretched))
    if entries != shape:
        context.write_shape(1, entries, _reason(context, "shape", shape, entries))


def _is_fixed_one(dim: Dim | None) -> bool:
    return dim is not None and dim.frozen == 1 and not dim.varies


def tile(context: NodeContext) -> None:
    """Choose the repeats of axes of length 1."""
    dims, repeats = context.dims(0), context.entries(1)
    if dims is None or repeats is None or len(repeats) != len(dims):
        return
    ones = [axis for axis, dim in enumerate(dims) if _is_fixed_one(dim)]
    entries = choose_entries(context, repeats, ones)
    if entries != repeats:
        context.write_shape(1, entries, _reason(context, "repeats", repeats, entries))


def constant_of_shape(context: NodeContext) -> None:
    """Choose all entries of the shape."""
    shape = context.entries(0)
    if shape is None:
        return
    entries = choose_entries(context, shape, list(range(len(shape))))
    if entries != shape:
        context.write_shape(0, entries, _reason(context, "shape", shape, entries))


def range_(context: NodeContext) -> None:
    """Choose the limit of a Range from 0 by steps of 1."""
    start, limit, delta = (context.integers(index) for index in range(3))
    if limit is None or start is None or delta is None or limit.ndim or start.item() or delta.item() != 1:
        return
    entry = choose_entries(context, [limit.item()], [0])[0]
    if isinstance(entry, int):
        return
    try:
        name = context.graph_state.emit_length(context.rw, entry, limit.dtype)
    except UnknownLength:
        context.refuse_unknown_length(1)
    context.set_input(1, name, f"limit {limit.item()} → {context.name_of(entry)}")
    value = lengths_value([entry], context.assignments)
    data = tuple(array.reshape(()).astype(limit.dtype) for array in value.data or ())
    value.dtype, value.dims, value.data = dtype_of(limit), (), data
    context.inputs[1] = value


def choose_entries(
    context: NodeContext, entries: list[int | Dim], axes: list[int], label: str = ""
) -> list[int | Dim]:
    """Return the entries under the current hypothesis: those of `axes` as they are, or as varying lengths.

    A varying length is an option if it had the entry's number in the source model. `label` names the choice point
    where one node has several; it is the node's label otherwise.
    """
    options: list[list[int | Dim]] = []
    for axis, entry in enumerate(entries):
        varying: list[Dim] = []
        if isinstance(entry, int) and axis in axes and entry > 1:
            varying = context.graph_state.varying_dims(entry)
        # A constant counts the rows of one item rather than those of all items.
        of_an_item = [dim for dim in varying if not context.assignments.carries_batch(dim)]
        options.append([entry, *(of_an_item or varying)])
    if all(len(each) == 1 for each in options):
        return entries
    kept, *rest = (list(each) for each in product(*(each[: 1 + _MAX_LENGTHS] for each in options)))
    rest.sort(key=lambda each: -sum(isinstance(entry, Dim) for entry in each))  # most varying entries first
    ways = [kept, *rest][:_MAX_OPTIONS]
    pattern = context.node.op_type, str(entries)
    return ways[context.hypotheses.choose(label or context.label, pattern, len(ways))]


def _reason(context: NodeContext, what: str, before: list[int | Dim], entries: list[int | Dim]) -> str:
    return f"{what} {context.text(before)} → {context.text(entries)}"
