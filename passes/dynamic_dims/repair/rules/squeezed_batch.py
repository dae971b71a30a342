"""Squeeze and Gather that take the axis of a batch of one away, and Unsqueeze that brings it back.

All three keep the elements in their order, so they are Reshapes, and the batch is laid with the axis beside it
for as long as the network works on what it takes for a single item.
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
"""What takes a batch away, until it is made a Reshape."""


def squeeze(context: NodeContext) -> list[Value] | None:
    """Lay a batch that is squeezed away with the axis beside it."""
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
    """Lay a batch with the axis beside it where its one item is taken by its number, 0."""
    x, index = context.input(0), context.integers(1)
    dims = x.known if x is not None else None
    if x is None or not dims or index is None or index.size != 1 or index.item() not in (0, -1):
        return None
    axis = context.attributes.get("axis", 0) % len(dims)
    if dims[axis].frozen != 1 or not context.assignments.carries_batch(dims[axis]):
        return None
    if not index.ndim:
        return _merge_removed(context, x, dims, [axis])
    context.snapshot()
    context.rw.rename("Identity")
    context.rw.drop("axis")
    context.set_input(1, "", f"of one item, item {index.item()} is all of {context.name_of(dims[axis])}")
    return [Value(x.dtype, dims)]


def unsqueeze(context: NodeContext) -> list[Value] | None:
    """Let an axis that is brought in be the batch that was laid with the axis behind it."""
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
    """Return the axes a Squeeze takes away, None if they are not known."""
    given = context.integers(1)
    if given is None and context.rw.input(1):
        return None
    axes = given.tolist() if given is not None else context.attributes.get("axes")
    return default if axes is None else [axis % rank for axis in axes]


def _merge_removed(
    context: NodeContext, x: Value, dims: Sequence[Dim], axes: Collection[int]
) -> list[Value] | None:
    if not any(context.assignments.carries_batch(dims[axis]) for axis in axes):
        return None
    frozen = [dim.frozen for axis, dim in enumerate(dims) if axis not in axes]
    ways = [
        interpretation.dims
        for interpretation in interpretations(dims, frozen, None, context.assignments)
        if interpretation.order is None
    ]
    if not ways:
        context.refuse("it drops the batch, and no axis is left that it could be laid with", 1)
    pattern = (context.node.op_type, tuple(dim.sizes for dim in dims), tuple(frozen))
    return _to_reshape(context, x, dims, ways[context.hypotheses.choose(context.label, pattern, len(ways))])


def _to_reshape(context: NodeContext, x: Value, dims: Sequence[Dim], wanted: tuple[Dim, ...]) -> list[Value]:
    """Make the node a Reshape."""
    kind = context.node.op_type
    context.snapshot()
    context.rw.rename("Reshape")
    context.rw.drop("axes", "axis")
    write_reshape(context, f"{kind} → Reshape to", np.empty(0, np.int64), tuple(dims), wanted, zeros=True)
    return [Value(x.dtype, wanted)]
