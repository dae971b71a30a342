"""The reductions for which OpenCV reads elements of wrong rows; shapes and axes identify them."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from onnx_migrate.facts.scope import Scope

from .answers import all_of, reaches
from .misfits import values_of

__all__ = ["divides_among_threads", "keeps_many_axes", "reduces_many_axes", "reduces_many_axes_before_others"]

_Dims = tuple["int | None", ...]

_DIVIDED = 1536
"""OpenCV divides a loop among threads from this much work on: it computes work / 1,024 stripes, and rounds halves to even."""

_ROWS = 3
"""OpenCV reads wrong rows if the axes before the last two have this many rows or more: the first two rows are right."""


@dataclass(frozen=True)
class _Reduction:
    """The dims that a reduction reduces and keeps, and those after the last axis that it reduces."""

    reduced: _Dims
    kept: _Dims
    after: _Dims
    is_of_last: bool
    """Whether it reduces the last axes of the shape and no others."""


def divides_among_threads(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether OpenCV 4.8 divides a reduction among threads; None if open dims decide.

    It counts the results, times the reduced entries but for the last axis, times the step of that axis
    (modules/dnn/src/layers/reduce_layer.cpp).
    """
    reduction = _reduction(node, scope)
    if reduction is None:
        return None
    is_divided = reaches((*reduction.kept, *reduction.reduced[:-1], *reduction.after), _DIVIDED)
    return all_of(is_divided, reaches(reduction.kept, 2), reaches(reduction.reduced, 2))


def keeps_many_axes(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether a reduction keeps three axes or more, with `_ROWS` before the last two; None if open dims decide."""
    reduction = _reduction(node, scope)
    return (
        None
        if reduction is None
        else all_of(reaches(reduction.kept[:-2], _ROWS), reaches(reduction.reduced, 2))
    )


def reduces_many_axes(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether a reduction is of three axes or more, with `_ROWS` before the last two; None if open dims decide."""
    reduction = _reduction(node, scope)
    return None if reduction is None else reaches(reduction.reduced[:-2], _ROWS)


def reduces_many_axes_before_others(node: onnx.NodeProto, place: int, scope: Scope) -> bool | None:
    """Return whether that holds of a reduction to several results of other axes than the last ones; None if that is open."""
    reduction = _reduction(node, scope)
    if reduction is None:
        return None
    return all_of(not reduction.is_of_last, reduces_many_axes(node, place, scope), reaches(reduction.kept, 2))


def _reduction(node: onnx.NodeProto, scope: Scope) -> _Reduction | None:
    """Return the dims that a node reduces, none if it names no axes; None if its axes or its rank are not known."""
    shape = scope.value_type(node.input[0]).shape
    named = node.input[1] if len(node.input) > 1 else ""
    stated_axes = scope.constant(named) if named else values_of(node).get("axes", ())
    if shape is None or stated_axes is None:
        return None
    # A negative axis counts from the end.
    axes = sorted(int(axis) % len(shape) for axis in stated_axes if shape)
    other_axes = [axis for axis in range(len(shape)) if axis not in axes]
    return _Reduction(
        tuple(shape[axis] for axis in axes),
        tuple(shape[axis] for axis in other_axes),
        shape[axes[-1] + 1 :] if axes else (),
        not axes or not other_axes or other_axes[-1] < axes[0],
    )
