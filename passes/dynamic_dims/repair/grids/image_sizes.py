"""Constants that hold the size of the image beside coordinates: limits of boxes, and factors between pixels and proportions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..domain import Array, Dim
from ..node_context import NodeContext
from ..tracked import ACROSS, DOWN
from .constants import constant_array
from .formula import Lengths, Quantity
from .writer import TableWriter

__all__ = ["follow_image_sizes"]

_MOST = 64
"""The most numbers in a constant with limits or factors; most have one or four."""
_LEAST = 16
"""Lengths of images that are looked for; smaller numbers are more often strides, or numbers of something else."""
_NEAR = 1e-6
_SCALING = frozenset({"Mul", "Div", "Min", "Max", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
"""Operators that scale coordinates by the size of the image, or compare them with it."""


def follow_image_sizes(context: NodeContext) -> None:
    """Replace numbers of a constant operand that are the size of the image by that size, where coordinates meet them.

    Raises UnrepairableNode where a square image leaves two sizes for a number, and the coordinate may be x or y.
    """
    marks = [context.graph_state.tracked(name).marks for name in context.node.input]
    tracked = next((at for at, mark in enumerate(marks) if mark is not None), None)
    if tracked is None:
        _follow_map_lengths(context)
        return
    if context.node.op_type == "Clip":
        _limit(context)
    if context.node.op_type not in _SCALING:
        return
    mark = marks[tracked]
    for index, name in enumerate(context.node.input):
        array = constant_array(context.graph_state, name) if index != tracked and name else None
        if array is None or mark is None or array.size > _MOST or array.dtype.kind not in "fiu":
            continue
        sized = _sized(context, index, array, mark)
        if sized is not None:
            if any(
                dim.sizes == own.sizes for dim in _divisors(sized) for _, own in _map_axes(context, index)
            ):
                context.graph_state.table_facts.names.add("map lengths")
            _replace(context, index, sized, array.dtype)


def _divisors(sized: _Sized) -> list[Dim]:
    lengths = sized.quantity.times or sized.quantity.over
    return [] if lengths is None else [dim for dim, _ in lengths.masks]


def _follow_map_lengths(context: NodeContext) -> None:
    """Replace the divisor of other numbers of a feature map, if coordinates of the model are divided by its lengths.

    These are the sizes of boxes: no grid is added to them, so nothing shows whether they are widths or heights but the length.
    """
    node = context.node
    if node.op_type != "Div" or "map lengths" not in context.graph_state.table_facts.names:
        return
    array = constant_array(context.graph_state, node.input[1])
    if array is None or array.size != 1 or array.dtype.kind != "f":
        return
    nothing = np.zeros([1] * max(array.ndim, 1), np.int64)
    sized = _sized(context, 1, array, nothing)
    if sized is not None:
        _replace(context, 1, sized, array.dtype)


@dataclass(frozen=True)
class _Sized:
    """The numbers of a constant, some of them lengths of the image or 1 / length."""

    quantity: Quantity
    text: str


def _sized(context: NodeContext, index: int, array: Array, mark: Array) -> _Sized | None:
    """Return a constant with the lengths of the image that it holds; None if it holds none. Raises UnrepairableNode."""
    numbers = array.astype(np.float64)
    divides = context.node.op_type == "Div" and index == 1
    # A limit of boxes can be the last pixel, which is the length less 1.
    forms = ((numbers, False, 0.0), (numbers + 1, False, 1.0), (_inverse(numbers), True, 0.0))
    for form, inverse, less in forms:
        scales = (divides and not less) or (context.node.op_type == "Mul" and inverse)
        lengths_held = _lengths_held(context, index, form, mark, maps=scales)
        # Images mostly have even lengths, so a last pixel is an odd number.
        if lengths_held is None or (less and (numbers % 2 != 1).any()):
            continue
        held = np.asarray(np.logical_or.reduce([mask.astype(bool) for _, mask in lengths_held.masks]))
        numerator = np.where(held, 1.0, numbers)
        subtracted = np.where(held, less, 0.0) if less else None
        over, times = (lengths_held, None) if inverse else (None, lengths_held)
        shown = ", ".join(dict.fromkeys(context.name_of(dim) for dim, _ in lengths_held.masks))
        context.graph_state.table_facts.names.add("sized")
        context.graph_state.table_facts.replaced += 1
        text = f"holds the size of the image or of a feature map, which becomes {shown}"
        return _Sized(Quantity(numerator, times=times, over=over, less=subtracted), text)
    return None


def _lengths_held(
    context: NodeContext, index: int, numbers: Array, mark: Array, *, maps: bool
) -> Lengths | None:
    """Return which columns hold which length, of the image or with `maps` of the feature map too; None if none does.

    Raises UnrepairableNode.
    """
    candidates = [*_images(context), *(_map_axes(context, index) if maps else ())]
    equal = [np.abs(numbers - dim.frozen) <= _NEAR * dim.frozen for _, dim in candidates]
    if not candidates or not np.logical_or.reduce(equal).any():
        return None
    chosen = _chosen(context, index, [role for role, _ in candidates], equal, mark)
    masks = ((dim, (chosen == number).astype(np.int64)) for number, (_, dim) in enumerate(candidates, 1))
    return Lengths(tuple((dim, mask) for dim, mask in masks if mask.any()))


def _inverse(numbers: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(numbers == 0, 0.0, 1 / numbers)


def _images(context: NodeContext) -> list[tuple[int, Dim]]:
    """Return the lengths of the image that grids of the model follow, along its rows and its columns."""
    return [
        (role, dim)
        for role, dim in context.graph_state.table_facts.image_axes.items()
        if dim.frozen >= _LEAST
    ]


def _map_axes(context: NodeContext, index: int) -> list[tuple[int, Dim]]:
    """Return the axes of the feature map that the other operand is of, its rows and its columns.

    Programs divide by them to get proportions. The function skips a length that is also the stride of the map.
    """
    dims = context.dims(1 - index) or ()
    factors = [factor for dim in dims if dim is not None for factor in dim.flat_factors() if factor.varies]
    if len(factors) != 2 or any(factor.of_batch for factor in factors):
        return []
    images = dict(_images(context))
    pairs = list(zip((DOWN, ACROSS), factors, strict=True))
    return [
        (role, dim)
        for role, dim in pairs
        if dim.frozen > 1 and role in images and images[role].frozen != dim.frozen**2
    ]


def _chosen(
    context: NodeContext, index: int, roles: Sequence[int], equal: Sequence[Array], mark: Array
) -> Array:
    """Return for each column the number of the length that it holds, from 1, and 0 for none. Raises UnrepairableNode."""
    own = equal[0]
    rank = max(mark.ndim, own.ndim)
    shown = mark.reshape([1] * (rank - mark.ndim) + list(mark.shape))
    shape = np.broadcast_shapes(shown.shape, own.shape)
    marks = _with_sizes(np.broadcast_to(shown, shape))
    fits = [np.broadcast_to(each, shape) for each in equal]
    count = np.sum(fits, 0)
    chosen = np.zeros(shape, np.int64)
    for number, (role, fit) in enumerate(zip(roles, fits, strict=True), 1):
        is_role = (marks == role) | ((count == 1) & (marks != DOWN) & (marks != ACROSS))
        chosen = np.where(fit & is_role & (chosen == 0), number, chosen)
    if ((count > 0) & (chosen == 0)).any():
        context.refuse(
            f"constant {context.rw.input(index)!r} holds a length of the exported image beside coordinates, and the model"
            " does not show whether it is the height or the width. Export it with a height other than the width",
            index,
        )
    wide = [axis for axis in range(rank) if shape[axis] > 1 and (chosen != chosen.take([0], axis)).any()]
    keep = tuple(
        slice(None) if axis in wide or (own.ndim == rank and own.shape[axis] > 1) else slice(0, 1)
        for axis in range(rank)
    )
    return np.asarray(chosen[keep])


def _with_sizes(marks: Array) -> Array:
    """Return marks in which the width and the height of a box have the marks of its center."""
    for axis, size in enumerate(marks.shape):
        center, rest = (marks.take(range(at, at + 2), axis) for at in (0, 2)) if size == 4 else (marks, marks)
        if size == 4 and center.all() and not rest.any():
            return np.concatenate([center, center], axis)
    return marks


def _replace(context: NodeContext, index: int, sized: _Sized, dtype: np.dtype[np.generic]) -> None:
    old = context.rw.input(index)
    name = TableWriter(context, index).quantity(sized.quantity, np.dtype(dtype))
    context.set_input(index, name, f"{old!r} {sized.text}")
    context.inputs[index] = None


def _limit(context: NodeContext) -> None:
    """Replace the upper limit of a Clip by the size of the image."""
    mark = context.graph_state.tracked(context.node.input[0]).marks
    rw = context.rw
    by_input = rw.version >= 11
    high = constant_array(context.graph_state, rw.input(2)) if by_input and rw.input(2) else None
    limit = context.attributes.get("max") if not by_input else None
    array = high if high is not None else None if limit is None else np.array(limit, np.float32)
    if mark is None or array is None:
        return
    sized = _sized(context, 2 if by_input else 0, array, mark)
    if sized is None:
        return
    dtype = np.dtype(array.dtype)
    lower = rw.input(1) if by_input else None
    least = context.attributes.get("min")
    if least is not None:
        lower = rw.constant(np.array(least, dtype), "least")
    if lower:
        rw.set_input(0, rw.before("Max", [rw.input(0), lower], hint="limited"))
    length = TableWriter(context, 0).quantity(sized.quantity, dtype)
    # A Clip has scalars as limits, and the width and the height of an image can differ.
    rw.rename("Min")
    rw.drop("min", "max")
    if len(context.node.input) > 2:
        context.set_input(2, "", "")
    context.set_input(1, length, f"its upper limit {sized.text}")
    context.inputs = [context.inputs[0], None]
