"""Repair rules of Slice and Split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..domain import Array, Dim, Dims, SampledValue
from ..domain.values import joined_axis, known_value
from ..node_context import NodeContext
from ..rule_table import rule

_END = np.iinfo(np.int64).max


@rule("Slice", of_constants=True)
def slice_(context: NodeContext) -> list[SampledValue] | None:
    """Make a Slice to the end of a varying axis end there at any size, and choose other ends.

    Returns the output's value where it is one of the feature maps that a Concat joined.
    """
    dims = context.dims(0)
    if "starts" in context.attributes:
        _by_attributes(context)
        return None
    starts, ends = context.integers(1), context.integers(2)
    if dims is None or starts is None or ends is None:
        return None
    if starts.ndim != 1 or starts.shape != ends.shape:
        context.rw.refuse(
            f"it has {starts.size} starts and {ends.size} ends, of {starts.ndim} and {ends.ndim} axes",
            code="invalid-node",
            hint="each start needs an end",
        )
    axes, steps = context.integers(3), context.integers(4)
    if (context.rw.input(3) and axes is None) or (context.rw.input(4) and steps is None):
        return None
    whole = steps is None or bool((steps == 1).all())
    part = _cut_between_terms(context, dims, starts, ends, axes) if whole else None
    if part is not None:
        return [part]
    _cut_from_the_end(context, dims, starts, axes)
    starts = context.integers(1)
    assert starts is not None
    entries: list[int | Dim] = []
    for index, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        axis = int(axes[index]) if axes is not None else index
        step = int(steps[index]) if steps is not None else 1
        dim = dims[axis]
        if dim is not None and start == 0 and _is_cut_near_the_end(context, axis, dim, end):
            entries.append(end - dim.frozen)
        else:
            entries.append(_end(context, dim, start, end, step, index))
    if entries == ends.tolist():
        return None
    if ends.dtype != np.int64:
        _narrow(context, entries)
        return None
    shown = ", ".join(
        "the end" if entry == _END else str(entry) if isinstance(entry, int) else context.name_of(entry)
        for entry in entries
    )
    context.write_shape(2, entries, f"ends {ends.tolist()} → [{shown}]")
    return None


def _cut_between_terms(
    context: NodeContext, dims: Dims, starts: Array, ends: Array, axes: Array | None
) -> SampledValue | None:
    """Start and end a Slice where the axes begin and end that a Concat joined, as each feature map; None if it does not."""
    axis = int(axes[0]) % len(dims) if axes is not None else 0
    dim = dims[axis] if len(starts) == 1 else None
    x = context.input(0)
    if x is None or dim is None or not dim.varies or starts.dtype != np.int64:
        return None
    terms = dim.flat_terms()
    bounds = [sum(term.frozen for term in terms[:count]) for count in range(len(terms) + 1)]
    start, end = int(starts[0]), min(int(ends[0]), dim.frozen)
    if len(terms) < 2 or start not in bounds or end not in bounds or start >= end:
        return None
    first, last = bounds.index(start), bounds.index(end)
    for index, count, bound in ((1, first, starts), (2, last, ends)):
        bound_name = ("starts", "ends")[index - 1]
        if 0 < count < len(terms):
            shown = " + ".join(context.name_of(term) for term in terms[:count])
            name = _emit_sum(context, terms[:count], index)
            context.set_input(index, name, f"{bound_name} {bound.tolist()} → [{shown}]")
        elif count and int(bound[0]) < max(dim.sizes):
            whole = np.array([_END], np.int64)
            name = context.rw.constant(whole, bound_name)
            context.set_input(index, name, f"{bound_name} {bound.tolist()} → [the end]", known_value(whole))
    return x.with_axis(axis, joined_axis(terms[first:last]))


def _emit_sum(context: NodeContext, terms: Sequence[Dim], index: int) -> str:
    """Write the sum of lengths, as a vector of one number; return its name."""
    names = [context.emit_shape([term], index) for term in terms]
    total = names[0]
    for name in names[1:]:
        total = context.rw.before("Add", [total, name], hint="sum")
    return total


def _cut_from_the_end(context: NodeContext, dims: Dims, starts: Array, axes: Array | None) -> None:
    """Count a start from the end, where another Slice takes the longer rest of the same axis: the two parts roll it."""
    moved = starts.copy()
    for index, start in enumerate(starts.tolist()):
        axis = int(axes[index]) if axes is not None else index
        dim = dims[axis]
        if dim is not None and _is_cut_near_the_end(context, axis, dim, start):
            moved[index] = start - dim.frozen
    if not np.array_equal(moved, starts):
        name = context.rw.constant(moved, "starts")
        context.set_input(1, name, f"starts {starts.tolist()} → {moved.tolist()}", known_value(moved))


def _is_cut_near_the_end(context: NodeContext, axis: int, dim: Dim, cut: int) -> bool:
    """Return whether two Slices divide a varying axis at a position that is nearer to its end than to its start."""
    if not dim.varies or not dim.frozen < 2 * cut < 2 * dim.frozen:
        return False
    parts, rank = set(), len(context.dims(0) or ())
    for reader in context.graph_state.consumers.get(context.node.input[0], ()):
        if reader.op_type != "Slice" or len(reader.input) < 3:
            continue
        starts, ends = (context.rw.constant_value(name) for name in reader.input[1:3])
        # Without axes, the entries of a Slice belong to the first axes in order.
        axes = context.rw.constant_value(reader.input[3]) if len(reader.input) > 3 else np.arange(8)
        if starts is None or ends is None or axes is None or len(starts) != 1:
            continue
        if int(axes[0]) % rank != axis:
            continue
        if int(starts[0]) == 0 and int(ends[0]) in (cut, cut - dim.frozen):
            parts.add("first")
        elif int(starts[0]) in (cut, cut - dim.frozen) and int(ends[0]) >= dim.frozen:
            parts.add("second")
    return parts == {"first", "second"}


def _end(context: NodeContext, dim: Dim | None, start: int, end: int, step: int, index: int) -> int | Dim:
    """Return the end under the current hypothesis: the number, a varying length that was it, or one from the back."""
    if dim is None or step < 0 or end < 0:
        return end
    if end >= dim.frozen and dim.varies:
        return end if end >= max(dim.sizes) else _END
    options: list[int | Dim] = [end]
    if start >= 0 and end > 1:
        options += context.graph_state.varying_dims(end)[:3]
    # An end so near to the last element may count from the back.
    if dim.varies and 0 < dim.frozen - end <= 2:
        options.append(end - dim.frozen)
    pattern = ("Slice", dim.sizes, start, end)
    if len(options) == 1:
        return end
    return options[context.hypotheses.choose(f"{context.label}[{index}]", pattern, len(options))]


def _narrow(context: NodeContext, entries: list[int | Dim]) -> None:
    """Write ends that were int32, clipped to the largest int32."""
    numbers = [entry for entry in entries if isinstance(entry, int)]
    if len(numbers) < len(entries):
        context.refuse("its ends are int32, and an end that is computed from a shape is int64", 2)
    name = context.rw.constant(np.minimum(numbers, np.iinfo(np.int32).max).astype(np.int32), "ends")
    context.set_input(2, name, f"ends → {numbers}")
    context.inputs[2] = None


def _by_attributes(context: NodeContext) -> None:
    """Repair the ends of a Slice up to opset 9, in which they are attributes."""
    dims, attributes = context.dims(0), context.attributes
    ends = list(attributes["ends"])
    axes = attributes.get("axes") or range(len(ends))
    if dims is None:
        return
    repaired = [
        _END if dim is not None and dim.varies and dim.frozen <= end < max(dim.sizes) else end
        for end, dim in zip(ends, (dims[axis] for axis in axes), strict=True)
    ]
    if repaired != ends:
        context.rw.set("ends", repaired)
        context.rw.note(f"ends {ends} → {repaired}")


@rule("Split")
def split(context: NodeContext) -> list[SampledValue] | None:
    """Split a varying axis into as many equal parts at any size, or into the axes that a Concat joined.

    Returns the values of the outputs in the second case. Refuses other unequal parts: raises UnrepairableNode.
    """
    dims, attributes = context.dims(0), context.attributes
    axis = attributes.get("axis", 0)
    dim = dims[axis] if dims is not None else None
    if dim is None or not dim.varies:
        return None
    sizes = context.integers(1)
    split_sizes = sizes.tolist() if sizes is not None else attributes.get("split")
    if split_sizes is None:
        return None
    x, terms = context.input(0), dim.flat_terms()
    if (
        sizes is not None
        and x is not None
        and len(terms) > 1
        and split_sizes == [term.frozen for term in terms]
    ):
        shown = ", ".join(map(context.name_of, terms))
        context.write_shape(
            1, list(terms), f"split {split_sizes} → [{shown}]: the feature maps that were joined"
        )
        return [x.with_axis(axis % len(dims or ()), term) for term in terms]
    if len(set(split_sizes)) > 1 or any(size % len(split_sizes) for size in dim.sizes):
        context.refuse(
            f"it splits axis {axis}, which changes with {context.symbols_in(dim)}, into parts of the fixed lengths"
            f" {split_sizes}, which are not equal parts at other sizes",
            1 if sizes is not None else None,
        )
    reason = f"split {split_sizes} → {len(split_sizes)} equal parts"
    if sizes is not None:
        context.set_input(1, "", reason)
        # Since opset 18, a Split without the lengths of its parts must state how many there are.
        if context.rw.version >= 18:
            context.rw.set("num_outputs", len(split_sizes))
    else:
        context.rw.drop("split")
        context.rw.note(reason)
    return None
