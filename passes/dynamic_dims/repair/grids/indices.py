"""Indices into the cells of a feature map, which a TopK or ArgMax returns: dividing by the width gives the row of a cell.

The width is a constant number there. It has no axis of its own, so no shape shows that it must follow the sizes. The axis
that the indices count does: it is merged of classes, rows and columns.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ..domain import Dim, SampledValue, fixed, merged_axis
from ..domain.values import dtype_of
from ..node_context import NodeContext
from ..tracked import CellIndex
from .constants import constant_array
from .tables import computed_table

__all__ = ["follow_cell_indices"]

_SAME = frozenset(
    {
        "Cast", "Reshape", "Unsqueeze", "Squeeze", "Gather", "GatherElements", "GatherND", "Slice", "Expand", "Transpose",
        "Identity", "Floor", "Flatten", "Tile", "Trunc", "Sub", "Max", "Min", "Split", "Clip", "Where", "Add",
    }
)  # fmt: skip


def follow_cell_indices(context: NodeContext) -> None:
    """Record which outputs of a node are indices of cells, and replace a constant that divides or multiplies such an index.

    The constant becomes the length of the axes that it stood for.
    """
    node, state = context.node, context.graph_state
    if node.op_type in ("TopK", "ArgMax", "ArgMin"):
        _start(context)
        return
    if node.op_type in ("Gather", "GatherElements", "GatherND"):
        _compute_gathered(context)
    indices = [state.tracked(name).index for name in node.input]
    if node.op_type == "Concat":  # of the indices along several axes, for a GatherND
        state.cell_indices.update((node.output[0], index) for index in indices if index is not None)
        return
    first = next((index for index in indices if index is not None), None)
    if first is None:
        return
    if node.op_type in _SAME:
        state.cell_indices.update((name, first) for name in node.output if name)
        return
    index = indices[0]
    number = _number(context) if node.op_type in ("Div", "Mod", "Mul") else None
    if index is None or number is None:
        return
    # Programs multiply a row by the width again, to get the index of its first cell.
    if node.op_type == "Mul":
        if prod(factor.frozen for factor in index.divided) == number:
            _replace(context, number, index.divided)
        return
    start = index.suffix(number)
    if start is not None:
        head, tail = index.factors[:start], index.factors[start:]
        state.cell_indices[node.output[0]] = (
            CellIndex(head, tail) if node.op_type == "Div" else CellIndex(tail)
        )
        _replace(context, number, tail)


def _compute_gathered(context: NodeContext) -> None:
    """Compute a constant table if the node gathers rows of cells from it."""
    index = context.graph_state.tracked(context.rw.input(1)).index
    dims = context.known(0)
    if index is None or index.dim is None or not dims or any(dim.varies for dim in dims):
        return
    axis = context.attributes.get("axis", 0) % len(dims)
    axes = range(len(dims)) if context.node.op_type == "GatherND" else [axis]
    along = [axis for axis in axes if dims[axis].frozen == index.dim.frozen]
    if len(along) == 1 and not computed_table(context, 0, {along[0]: index.dim}):
        context.refuse(
            f"{context.describe(context.rw.input(0))} has {index.dim.frozen} rows, one for each of the cells that the index"
            f" counts, but their number changes with {context.symbols_in(index.dim)}",
            0,
        )


def _start(context: NodeContext) -> None:
    """Record the indices that a TopK, ArgMax or ArgMin returns of an axis that changes."""
    node, dims = context.node, context.dims(0)
    axis = context.attributes.get("axis", -1 if node.op_type == "TopK" else 0)
    dim = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
    if dim is not None and dim.varies and not dim.of_batch and node.output[-1]:
        context.graph_state.cell_indices[node.output[-1]] = CellIndex(tuple(dim.flat_factors()), dim=dim)


def _replace(context: NodeContext, number: int, axes: tuple[Dim, ...]) -> None:
    """Replace the second input by the length of axes, if one of them changes."""
    array = constant_array(context.graph_state, context.rw.input(1))
    if array is None or not any(axis.varies for axis in axes):
        return
    dim = merged_axis(list(axes))
    name = context.emit_length(dim, array.dtype, 1)
    if array.ndim:
        shape = context.rw.constant(np.array(array.shape, np.int64), "shape")
        name = context.rw.before("Reshape", [name, shape], hint="length")
    facts = context.graph_state.table_facts
    facts.names.add("sized")
    facts.replaced += 1
    facts.index_axes[name] = axes
    reason = f"{number} → {context.name_of(dim)}, the length of the axes that the index counts"
    context.set_input(1, name, reason, SampledValue(dtype_of(array), tuple(map(fixed, array.shape))))


def _number(context: NodeContext) -> int | None:
    """Return the whole number that a node divides or multiplies by."""
    name = context.rw.input(1)
    axes = context.graph_state.table_facts.index_axes.get(name)
    if axes is not None:  # an earlier interpretation of this body replaced the number
        return prod(axis.frozen for axis in axes)
    array = constant_array(context.graph_state, name)
    if array is None or array.size != 1 or array.dtype.kind not in "iuf":
        return None
    number = float(array.reshape(-1)[0])
    return int(number) if number == int(number) and number > 1 else None
