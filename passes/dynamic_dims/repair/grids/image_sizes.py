"""Constants that hold the size of the image beside coordinates: limits of boxes, and factors between pixels and proportions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..domain import Array, Dim
from ..node_context import NodeContext
from .constants import constant_array
from .coordinates import ACROSS, DOWN
from .formula import Lengths, Quantity
from .writer import TableWriter

__all__ = ["follow_image_sizes"]

_MOST = 64
"""Numbers in a constant that is looked at; limits and factors are one or four numbers."""
_LEAST = 16
"""Lengths of images that are looked for; smaller numbers are more often strides, or numbers of something else."""
_NEAR = 1e-6


def follow_image_sizes(context: NodeContext) -> None:
    """Replace numbers of a constant operand that are the size of the image by that size, where coordinates meet them.

    Raises UnrepairableNode where a square image leaves two sizes for a number, and the coordinate may be x or y.
    """
    known = context.graph_state.coordinates
    marks = [known.get(name) for name in context.node.input]
    tracked = next((at for at, mark in enumerate(marks) if mark is not None), None)
    if tracked is None:
        return
    if context.node.op_type == "Clip":
        _limit(context)
        return
    mark = marks[tracked]
    for index, name in enumerate(context.node.input):
        array = constant_array(context, name) if index != tracked and name else None
        if array is None or mark is None or array.size > _MOST or array.dtype.kind not in "fiu":
            continue
        sized = _sized(context, index, array, mark)
        if sized is not None:
            _replace(context, index, sized, array.dtype)


@dataclass(frozen=True)
class _Sized:
    """The numbers of a constant, of which some are lengths of the image: `less` is subtracted, or all are `inverse`."""

    quantity: Quantity
    inverse: bool
    text: str


def _sized(context: NodeContext, index: int, array: Array, mark: Array) -> _Sized | None:
    """Return a constant with the lengths of the image that it holds; None if it holds none. Raises UnrepairableNode."""
    images = _images(context)
    numbers = array.astype(np.float64)
    for form, inverse, less in (
        (numbers, False, 0.0),
        (numbers + 1, False, 1.0),
        (_inverse(numbers), True, 0.0),
    ):
        equal = {role: np.abs(form - dim.frozen) <= _NEAR * dim.frozen for role, dim in images.items()}
        matches = np.logical_or.reduce(list(equal.values())) if equal else np.zeros_like(numbers, bool)
        if less and (matches & ~(numbers % 2 == 1)).any():
            continue
        if not matches.any():
            continue
        roles = _roles_of(context, index, equal, mark, matches)
        lengths = Lengths(
            tuple(
                (images[role], (roles == role).astype(np.int64)) for role in images if (roles == role).any()
            )
        )
        held = np.asarray(np.logical_or.reduce([mask.astype(bool) for _, mask in lengths.masks]))
        numerator = np.where(held, 1.0, numbers)
        subtracted = np.where(held, less, 0.0) if less else None
        over, times = (lengths, None) if inverse else (None, lengths)
        shown = ", ".join(sorted({context.name_of(dim) for dim, _ in lengths.masks}))
        context.graph_state.table_facts.add("sized")
        text = f"holds the size of the image, which becomes {shown}"
        return _Sized(Quantity(numerator, times=times, over=over, less=subtracted), inverse, text)
    return None


def _inverse(numbers: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.where(numbers == 0, 0.0, 1 / numbers)


def _images(context: NodeContext) -> dict[int, Dim]:
    """Return the lengths of the image that grids of the model follow, along its rows and its columns."""
    return {role: dim for role, dim in context.graph_state.image_axes.items() if dim.frozen >= _LEAST}


def _roles_of(
    context: NodeContext, index: int, equal: dict[int, Array], mark: Array, matches: Array
) -> Array:
    """Return for each column the axis of the image whose length it holds, 0 for none. Raises UnrepairableNode."""
    rank = max(mark.ndim, matches.ndim)
    shown = mark.reshape([1] * (rank - mark.ndim) + list(mark.shape))
    shape = np.broadcast_shapes(shown.shape, matches.shape)
    marks, match = _with_sizes(np.broadcast_to(shown, shape)), np.broadcast_to(matches, shape)
    roles = np.zeros(shape, np.int64)
    for role, same in equal.items():
        fits = np.broadcast_to(same, shape) & match
        other = [np.broadcast_to(each, shape) for each_role, each in equal.items() if each_role != role]
        alone = fits & ~np.logical_or.reduce(other) if other else fits
        roles = np.where(
            fits & ((marks == role) | (alone & (marks != DOWN) & (marks != ACROSS))), role, roles
        )
    if (match & (roles == 0)).any() and marks.any():
        name = context.rw.input(index)
        context.refuse(
            f"constant {name!r} holds a length of the exported image beside coordinates, and the model does not show"
            " whether it is the height or the width. Export it with a height other than the width",
            index,
        )
    wide = [axis for axis in range(len(shape)) if shape[axis] > 1 and (roles != roles.take([0], axis)).any()]
    keep = tuple(
        slice(None) if axis in wide or (matches.ndim == rank and matches.shape[axis] > 1) else slice(0, 1)
        for axis in range(rank)
    )
    return np.asarray(roles[keep])


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
    mark = context.graph_state.coordinates.get(context.node.input[0])
    rw = context.rw
    by_input = rw.version >= 11
    high = constant_array(context, rw.input(2)) if by_input and rw.input(2) else None
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
    rw.rename("Min")
    rw.drop("min", "max")
    if len(context.node.input) > 2:
        context.set_input(2, "", "")
    context.set_input(1, length, f"its upper limit {sized.text}")
    context.inputs = [context.inputs[0], None]
