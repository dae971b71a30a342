"""Repair rules of Reshape and Flatten."""

from __future__ import annotations

from math import prod

from ..domain import Array, Dim, Value
from ..node_context import NodeContext, text
from ..reshape_alignment import interpretations

__all__ = ["flatten", "reshape", "write_reshape"]


def reshape(context: NodeContext) -> list[Value] | None:
    """Write a shape that keeps each varying axis where the frozen sizes had it; return the output's value.

    The smallest change is made: an entry that is right stays, 0 copies the input's axis of the same index, -1 stands
    for one entry, and the others are read from the shapes of earlier values.
    """
    x, shape = context.input(0), context.input(1)
    if x is None or shape is None or shape.data is None or not x.dtype:
        return None
    dims = x.known
    if dims is None:
        return None
    zeros = not context.attributes.get("allowzero")
    assignments = range(context.assignments.count)
    as_is = [
        _resolved(shape.data[assignment], [dim.sizes[assignment] for dim in dims], zeros)
        for assignment in assignments
    ]
    frozen = as_is[0]
    if frozen is None:
        return None
    given = shape.data[0].tolist()
    free = given.index(-1) if -1 in given else None
    found = interpretations(dims, frozen, free, context.assignments)
    if not found:
        if any(each is None for each in as_is):
            context.refuse(
                f"its constant shape {text(shape.data[0])} does not have as many elements as its input"
                f" {context.text(list(dims))} at other sizes",
                1,
            )
        return None
    pattern = ("Reshape", tuple(dim.sizes for dim in dims), tuple(frozen))
    interpretation = found[context.hypotheses.choose(context.label, pattern, len(found))]
    wanted = interpretation.dims
    if interpretation.order is not None:
        return _transposed(context, shape.data[0], dims, wanted, interpretation.order, x.dtype)
    if any(each != [dim.sizes[assignment] for dim in wanted] for assignment, each in enumerate(as_is)):
        write_reshape(context, f"shape {text(shape.data[0])} →", shape.data[0], dims, wanted, zeros=zeros)
    return [Value(x.dtype, wanted, _reshaped(x, wanted, context))]


def _transposed(
    context: NodeContext,
    given: Array,
    dims: tuple[Dim, ...],
    wanted: tuple[Dim, ...],
    order: tuple[int, ...],
    dtype: int,
) -> list[Value]:
    """Reshape to the axes in the order of the elements, then transpose.

    At the frozen sizes the Transpose moves an axis of length 1 only, which a Reshape alone does as well.
    """
    first = tuple(wanted[axis] for axis in order)
    write_reshape(context, f"shape {text(given)} →", given, dims, first, zeros=True)
    output = context.node.output[0]
    raw = context.rw.detach_output(0)
    context.rw.after("Transpose", [raw], [output], perm=[order.index(axis) for axis in range(len(order))])
    context.graph_state.record(output, Value(dtype, wanted))
    return [Value(dtype, first)]


def write_reshape(
    context: NodeContext,
    what: str,
    given: Array,
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
    left = [axis for axis, entry in enumerate(entries) if isinstance(entry, Dim)]
    if left:
        # -1 stands for the last entry, which is likeliest a product, unless the shape had a -1 already.
        free = next((axis for axis in left if axis < len(given) and given[axis] == -1), left[-1])
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


def _reshaped(x: Value, wanted: tuple[Dim, ...], context: NodeContext) -> tuple[Array, ...] | None:
    if x.data is None or any(dim.varies for dim in wanted):
        return None
    sizes = [dim.frozen for dim in wanted]
    if len({id(array) for array in x.data}) == 1:
        return (x.data[0].reshape(sizes),) * context.assignments.count
    return tuple(array.reshape(sizes) for array in x.data)


def flatten(context: NodeContext) -> list[Value] | None:
    """Return the value of a Flatten's output with the factors of its merged axes; the node needs no repair."""
    x = context.input(0)
    dims = x.known if x is not None else None
    if x is None or dims is None:
        return None
    axis = context.attributes.get("axis", 1)
    sides = []
    for part in (dims[:axis], dims[axis:]) if axis >= 0 else (dims[: len(dims) + axis], dims[axis:]):
        factors = [factor for dim in part if dim is not None for factor in dim.flat_factors()]
        sides += interpretations(factors, [prod(dim.frozen for dim in factors)], 0, context.assignments)[:1]
    flat = tuple(side.dims[0] for side in sides)
    return [Value(x.dtype, flat)] if len(flat) == 2 else None
