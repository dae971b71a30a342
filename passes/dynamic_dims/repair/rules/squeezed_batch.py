"""Repair rules of Squeeze and Gather that remove a batch of one, and of Unsqueeze that brings it back.

All three keep the order of the elements, so they become Reshapes: the batch is merged with a neighbouring axis for as
long as the network computes on what it takes for a single item.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..domain import Dim, Value
from ..node_context import NodeContext
from ..reshape_alignment import interpretations
from .reshape import write_reshape

__all__ = ["BATCH_REMOVERS", "gather_item", "squeeze", "unsqueeze"]

BATCH_REMOVERS = frozenset({"Squeeze", "Gather"})
"""The operators that can remove a batch axis; one that does is made a Reshape."""


def squeeze(context: NodeContext) -> list[Value] | None:
    """Merge a batch that is squeezed away with a neighbouring axis; return the output's value, None if it is no batch."""
    x = context.input(0)
    dims = x.known if x is not None else None
    if x is None or dims is None:
        return None
    ones = [axis for axis, dim in enumerate(dims) if dim.frozen == 1]
    axes = _axes(context, len(dims), ones)
    if axes is None or any(dims[axis].frozen != 1 for axis in axes):
        return None
    return _merge_removed(context, x, dims, axes)


def gather_item(context: NodeContext) -> list[Value] | None:
    """Merge the batch with a neighbouring axis where a Gather takes its one item by index 0 or -1.

    With the index as a vector the axis stays, and the node becomes an Identity. Returns the output's value, None if
    the axis is no batch.
    """
    x, index = context.input(0), context.integers(1)
    dims = x.known if x is not None else None
    if x is None or not dims or index is None or index.size != 1 or index.item() not in (0, -1):
        return None
    axis = context.attributes.get("axis", 0) % len(dims)
    if dims[axis].frozen != 1 or not context.assignments.carries_batch(dims[axis]):
        return None
    if not index.ndim:
        return _merge_removed(context, x, dims, [axis])
    context.rw.rename("Identity")
    context.rw.drop("axis")
    context.set_input(
        1, "", f"item {index.item()} of the batch of one → all items of {context.name_of(dims[axis])}"
    )
    return [Value(x.dtype, dims)]


def unsqueeze(context: NodeContext) -> list[Value] | None:
    """Split the batch off a merged axis again where an Unsqueeze adds an axis; return the output's value if it does."""
    x = context.input(0)
    dims = x.known if x is not None else None
    if x is None or dims is None or not any(_has_batch_factor(dim, context) for dim in dims):
        return None
    given = context.integers(1)
    axes = given.tolist() if given is not None else context.attributes.get("axes")
    if not axes:
        return None
    rank = len(dims) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(dims)
    as_is = tuple(context.assignments.fixed(1) if axis in new else next(rest) for axis in range(rank))
    frozen = [dim.frozen for dim in as_is]
    ways = [
        interpretation.dims
        for interpretation in interpretations(dims, frozen, None, context.assignments)
        if interpretation.order is None and any(interpretation.dims[axis].varies for axis in new)
    ]
    ways.append(as_is)
    pattern = ("Unsqueeze", tuple(dim.sizes for dim in dims), tuple(frozen))
    wanted = ways[context.hypotheses.choose(context.label, pattern, len(ways))]
    return None if wanted == as_is else _to_reshape(context, x, dims, wanted)


def _has_batch_factor(dim: Dim, context: NodeContext) -> bool:
    return any(
        factor.frozen == 1 and context.assignments.carries_batch(factor)
        for factor in dim.flat_factors()
        if dim.factors
    )


def _axes(context: NodeContext, rank: int, default: list[int]) -> list[int] | None:
    """Return the axes that a Squeeze removes, None if they are not known."""
    given = context.integers(1)
    if given is None and context.rw.input(1):
        return None
    axes = given.tolist() if given is not None else context.attributes.get("axes")
    return default if axes is None else [axis % rank for axis in axes]


def _merge_removed(
    context: NodeContext, x: Value, dims: Sequence[Dim], axes: Collection[int]
) -> list[Value] | None:
    """Make a node that removes `axes` a Reshape that merges the batch among them; None if there is none."""
    if not any(context.assignments.carries_batch(dims[axis]) for axis in axes):
        return None
    frozen = [dim.frozen for axis, dim in enumerate(dims) if axis not in axes]
    ways = [
        interpretation.dims
        for interpretation in interpretations(dims, frozen, None, context.assignments)
        if interpretation.order is None
    ]
    if not ways:
        context.refuse(
            "it removes the batch axis, and its output has no axis into which the batch could be merged", 1
        )
    pattern = (context.node.op_type, tuple(dim.sizes for dim in dims), tuple(frozen))
    return _to_reshape(context, x, dims, ways[context.hypotheses.choose(context.label, pattern, len(ways))])


def _to_reshape(context: NodeContext, x: Value, dims: Sequence[Dim], wanted: tuple[Dim, ...]) -> list[Value]:
    """Make the node a Reshape to the dims `wanted`; return its output's value."""
    kind = context.node.op_type
    context.rw.rename("Reshape")
    context.rw.drop("axes", "axis")
    write_reshape(context, f"{kind} → Reshape to", np.empty(0, np.int64), tuple(dims), wanted, zeros=True)
    return [Value(x.dtype, wanted)]
