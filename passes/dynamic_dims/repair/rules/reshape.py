"""Repair rules of Reshape and Flatten, and of Squeeze, Gather and Unsqueeze, which remove a batch of one and bring it back.

Squeeze, Gather and Unsqueeze keep the order of the elements here, so they become Reshapes. Between them, the batch is
merged with a neighbouring axis, because the network computes on a single item there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import TypeVar

from ..domain import SAMPLES, Array, Dim, SampledValue, fixed
from ..node_context import NodeContext
from ..reshape_alignment import interpretations
from ..rule_table import rule

__all__ = ["gather_item"]

Way = TypeVar("Way")


@rule("Reshape")
def reshape(context: NodeContext) -> list[SampledValue] | None:
    """Write a shape that keeps each varying axis where the frozen sizes had it; return the output's value.

    The rule changes as little as possible. A correct entry stays, 0 copies the input's axis of the same index, and
    one entry may be -1. The other entries are read from the shapes of earlier values.
    """
    x, dims, shape = context.input(0), context.known(0), context.input(1)
    if x is None or dims is None or shape is None or shape.data is None or not x.dtype:
        return None
    zeros = not context.attributes.get("allowzero")
    as_is = [
        _resolved(each, [dim.sizes[assignment] for dim in dims], zeros)
        for assignment, each in enumerate(shape.data)
    ]
    frozen = as_is[0]
    if frozen is None:
        return None
    entries = shape.data[0].tolist()
    free = entries.index(-1) if -1 in entries else None
    readings = interpretations(dims, frozen, free)
    if not readings:
        # Later axes of a length may lack the factors that the first one shows.
        dims = tuple(map(context.graph_state.first_dim, dims))
        readings = interpretations(dims, frozen, free)
    if not readings:
        if any(each is None for each in as_is):
            context.refuse(
                f"its constant shape {entries} does not have as many elements as its input"
                f" {context.text(list(dims))} at other sizes",
                1,
            )
        return None
    interpretation = _choose(context, dims, frozen, readings)
    wanted = interpretation.dims
    if interpretation.order is not None:
        return _transposed(context, entries, dims, wanted, interpretation.order, x.dtype)
    if any(each != [dim.sizes[assignment] for dim in wanted] for assignment, each in enumerate(as_is)):
        _write_reshape(context, f"shape {entries} →", entries, dims, wanted, zeros=zeros)
    return [SampledValue(x.dtype, wanted, _reshaped(x, wanted))]


def _transposed(
    context: NodeContext,
    given: list[int],
    dims: tuple[Dim, ...],
    wanted: tuple[Dim, ...],
    order: tuple[int, ...],
    dtype: int,
) -> list[SampledValue]:
    """Reshape to the axes in the order of the elements, then transpose.

    At the frozen sizes the Transpose moves an axis of length 1 only, which a Reshape alone does as well.
    """
    first = tuple(wanted[axis] for axis in order)
    _write_reshape(context, f"shape {given} →", given, dims, first, zeros=True)
    output = context.node.output[0]
    raw = context.rw.detach_output(0)
    context.rw.after("Transpose", [raw], [output], perm=[order.index(axis) for axis in range(len(order))])
    context.graph_state.record(output, SampledValue(dtype, wanted))
    return [SampledValue(dtype, first)]


def _choose(context: NodeContext, dims: Sequence[Dim], frozen: Sequence[int], ways: Sequence[Way]) -> Way:
    """Return the way that is assumed to make `dims` of the frozen lengths `frozen`."""
    pattern = (context.node.op_type, tuple(dim.sizes for dim in dims), tuple(frozen))
    return ways[context.hypotheses.choose(context.label, pattern, len(ways))]


def _write_reshape(
    context: NodeContext,
    what: str,
    given: list[int],
    dims: tuple[Dim, ...],
    wanted: tuple[Dim, ...],
    *,
    zeros: bool,
) -> None:
    """Replace the shape `given` of a Reshape by one that turns `dims` into `wanted`; the reason begins with `what`.

    `zeros` says whether an entry 0 copies an axis. Raises UnrepairableNode.
    """
    entries: list[int | Dim] = []
    for axis, dim in enumerate(wanted):
        copies = zeros and axis < len(dims) and dims[axis] == dim
        if copies and axis < len(given) and given[axis] == 0:
            entries.append(0)
        elif not dim.varies:
            entries.append(-1 if axis < len(given) and given[axis] == -1 else dim.frozen)
        else:
            entries.append(0 if copies else dim)
    dynamic_axes = [axis for axis, entry in enumerate(entries) if isinstance(entry, Dim)]
    if dynamic_axes:
        # -1 stands for the last entry, which is likeliest a product, unless the shape had a -1 already.
        free = next(
            (axis for axis in dynamic_axes if axis < len(given) and given[axis] == -1), dynamic_axes[-1]
        )
        entries = [wanted[axis].frozen if entry == -1 else entry for axis, entry in enumerate(entries)]
        entries[free] = -1
    shown = ", ".join(context.name_of(entry) if isinstance(entry, Dim) else str(entry) for entry in entries)
    follows = ", ".join(
        f"axis {axis} is {context.name_of(dim)}" for axis, dim in enumerate(wanted) if dim.varies
    )
    context.write_shape(1, entries, f"{what} [{shown}]: {follows}")


def _resolved(shape: Array, sizes: list[int], zeros: bool) -> list[int] | None:
    """Return the sizes that a Reshape outputs for an input of these sizes, None if it is not valid."""
    result = []
    for axis, size in enumerate(shape.tolist()):
        if size == 0 and zeros and axis >= len(sizes):
            return None
        result.append(sizes[axis] if size == 0 and zeros else size)
    total = prod(sizes)
    if result.count(-1) > 1:
        return None
    if -1 in result:
        rest = -prod(result)
        if rest <= 0 or total % rest:
            return None
        result[result.index(-1)] = total // rest
    return result if prod(result) == total else None


def _reshaped(x: SampledValue, wanted: tuple[Dim, ...]) -> tuple[Array, ...] | None:
    if x.data is None or any(dim.varies for dim in wanted):
        return None
    sizes = [dim.frozen for dim in wanted]
    if len({id(array) for array in x.data}) == 1:
        return (x.data[0].reshape(sizes),) * SAMPLES
    return tuple(array.reshape(sizes) for array in x.data)


@rule("Flatten")
def flatten(context: NodeContext) -> list[SampledValue] | None:
    """Return the value of a Flatten's output with the factors of its merged axes; the node needs no repair."""
    x, dims = context.input(0), context.known(0)
    if x is None or dims is None:
        return None
    axis = context.attributes.get("axis", 1)
    sides = []
    for part in (dims[:axis], dims[axis:]):
        factors = [factor for dim in part for factor in dim.flat_factors()]
        sides += interpretations(factors, [prod(dim.frozen for dim in factors)], 0)[:1]
    flat = tuple(side.dims[0] for side in sides)
    return [SampledValue(x.dtype, flat)] if len(flat) == 2 else None


@rule("Squeeze")
def squeeze(context: NodeContext) -> list[SampledValue] | None:
    """Merge a batch that is squeezed away with a neighbouring axis; return the output's value, None if it is no batch."""
    dims = context.known(0)
    if dims is None:
        return None
    constant_axes = context.integers(1)
    if constant_axes is None and context.rw.input(1):
        return None
    axes = constant_axes.tolist() if constant_axes is not None else context.attributes.get("axes")
    if axes is None:
        axes = [axis for axis, dim in enumerate(dims) if dim.frozen == 1]
    return _merge_removed(context, dims, [axis % len(dims) for axis in axes])


def gather_item(context: NodeContext) -> list[SampledValue] | None:
    """Merge the batch with a neighbouring axis where a Gather takes its one item by index 0 or -1.

    With the index as a vector the axis stays, and the node becomes an Identity. Returns the output's value, None if
    the axis is no batch.
    """
    x, dims, index = context.input(0), context.known(0), context.integers(1)
    if x is None or not dims or index is None or index.size != 1 or index.item() not in (0, -1):
        return None
    axis = context.attributes.get("axis", 0) % len(dims)
    if dims[axis].frozen != 1 or not dims[axis].of_batch:
        return None
    if not index.ndim:
        return _merge_removed(context, dims, [axis])
    context.rw.rename("Identity")
    context.rw.drop("axis")
    context.set_input(
        1, "", f"item {index.item()} of the batch of one → all items of {context.name_of(dims[axis])}"
    )
    return [SampledValue(x.dtype, dims)]


def _merge_removed(
    context: NodeContext, dims: Sequence[Dim], axes: Collection[int]
) -> list[SampledValue] | None:
    """Make a node that removes `axes` a Reshape that merges the batch among them; None if there is none."""
    removed = [dims[axis] for axis in axes]
    if any(dim.frozen != 1 for dim in removed) or not any(dim.of_batch for dim in removed):
        return None
    frozen = [dim.frozen for axis, dim in enumerate(dims) if axis not in axes]
    ways = [way.dims for way in interpretations(dims, frozen, None) if way.order is None]
    if not ways:
        context.refuse(
            "it removes the batch axis, and its output has no axis into which the batch could be merged", 1
        )
    return _to_reshape(context, dims, _choose(context, dims, frozen, ways))


@rule("Unsqueeze")
def unsqueeze(context: NodeContext) -> list[SampledValue] | None:
    """Split the batch off a merged axis again where an Unsqueeze adds an axis; return the output's value if it does."""
    dims, constant_axes = context.known(0), context.integers(1)
    if not any(
        factor.frozen == 1 and factor.of_batch
        for dim in dims or ()
        if dim.factors
        for factor in dim.flat_factors()
    ):
        return None
    axes = constant_axes.tolist() if constant_axes is not None else context.attributes.get("axes")
    if dims is None or not axes:
        return None
    rank = len(dims) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(dims)
    as_is = tuple(fixed(1) if axis in new else next(rest) for axis in range(rank))
    frozen = [dim.frozen for dim in as_is]
    ways = [
        way.dims
        for way in interpretations(dims, frozen, None)
        if way.order is None and any(way.dims[axis].varies for axis in new)
    ]
    wanted = _choose(context, dims, frozen, [*ways, as_is])
    return None if wanted == as_is else _to_reshape(context, dims, wanted)


def _to_reshape(context: NodeContext, dims: Sequence[Dim], wanted: tuple[Dim, ...]) -> list[SampledValue]:
    """Make the node a Reshape to the dims `wanted`; return its output's value."""
    kind, x = context.node.op_type, context.input(0)
    context.rw.rename("Reshape")
    context.rw.drop("axes", "axis")
    _write_reshape(context, f"{kind} → Reshape to", [], tuple(dims), wanted, zeros=True)
    return [SampledValue(x.dtype if x is not None else 0, wanted)]
