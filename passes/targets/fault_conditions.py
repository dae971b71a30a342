"""Conditions on a node that `when` of a fault may use, apart from the values of attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from onnx_migrate.facts.scope import Scope
from onnx_migrate.model.graphs import subgraphs

from .answers import any_of
from .channel_blocks import narrow_inputs
from .misfits import values_of
from .pool_windows import begins_in_padding, is_cut_off
from .reductions import (
    divides_among_threads,
    keeps_many_axes,
    reduces_many_axes,
    reduces_many_axes_before_others,
)
from .resized_lengths import picks_otherwise, rounds_lengths, samples_by_lengths

__all__ = ["ATTRIBUTES", "SIZES"]


def _pads_only_at_end(given: Mapping[str, Any]) -> bool:
    pads = list(given.get("pads", ()))
    half = len(pads) // 2
    return any(pads[half:]) and not any(pads[:half])


def _enlarges(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    scales = scope.constant(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if scales is not None and scales.size:
        return bool((scales > 1).any())
    return _is_longer(scope.value_type(node.output[0]).shape, scope.value_type(node.input[0]).shape)


def _has_more_indices_than_data(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    indices, data = scope.value_type(node.input[1]).shape, scope.value_type(node.input[0]).shape
    pairs = zip(indices or (), data or (), strict=False)
    return any(a is not None and b is not None and a > b for a, b in pairs)


def _has_more_than_four_axes(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    return (scope.value_type(node.input[0]).rank or 0) > 4


def _has_zero_points_by_column(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    shape = scope.value_type(node.input[3]).shape if len(node.input) > 3 and node.input[3] else ()
    return shape not in ((), (1,), None)


def _is_of_float16(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    return scope.value_type(node.input[0]).dtype == onnx.TensorProto.FLOAT16


def _loses_leading_axes(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    """Return whether a matrix is multiplied with matrices that lie along axes of 1 alone."""
    first_shape, right = (scope.value_type(name).shape for name in node.input)
    return (
        first_shape is not None
        and right is not None
        and len(first_shape) == 2 < len(right)
        and set(right[:-2]) <= {1, None}
    )


def _branches_of_unknown_rank(node: onnx.NodeProto, place: int, scope: Scope) -> bool:
    return any(
        scope.inner(node, place, name, at, graph).value_type(value.name).rank is None
        for name, at, graph in subgraphs(node)
        for value in graph.output
    )


def _spreads_channels(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    return bool(narrow_inputs(node, lambda name: scope.value_type(name).shape, scope.makers.get))


def _is_longer(one: tuple[int | None, ...] | None, other: tuple[int | None, ...] | None) -> bool | None:
    """Return whether a shape is longer than another along an axis; None if open dims decide."""
    if one is None or other is None or len(one) != len(other):
        return None
    return any_of(None if a is None or b is None else a > b for a, b in zip(one, other, strict=True))


def _has_a_batch(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    shape = scope.value_type(node.input[0]).shape
    return None if not shape or shape[0] is None else shape[0] > 1


def _tiles_after_others(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether an axis is tiled that comes after an axis of several entries without tiling."""
    repeats, shape = scope.constant(node.input[1]), scope.value_type(node.input[0]).shape
    if repeats is None:
        return None
    last = max((axis for axis, count in enumerate(repeats) if count > 1), default=0)
    if shape is None:
        return None if any(repeats > 1) else False
    before = (dim for dim, count in zip(shape, repeats[:last], strict=False) if count == 1)
    return any_of(None if dim is None else dim > 1 for dim in before)


def _padded_axes(node: onnx.NodeProto, scope: Scope) -> tuple[set[int], int] | None:
    """Return the axes that a Pad pads, and how many there are; None if that is not known."""
    named = node.input[1] if len(node.input) > 1 else ""
    pads = scope.constant(named) if named else values_of(node).get("pads")
    rank = scope.value_type(node.input[0]).rank
    if pads is None or rank is None:
        return None
    axes = scope.constant(node.input[3]) if len(node.input) > 3 and node.input[3] else range(rank)
    if axes is None:
        return None
    count = len(pads) // 2
    ends = zip(axes, pads[:count], pads[count:], strict=False)
    # A negative axis counts from the end.
    return {int(axis) % rank for axis, begin, end in ends if begin or end}, rank


def _pads_all_but_the_last(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether axes are padded, and not the last one."""
    padded = _padded_axes(node, scope)
    return padded and bool(padded[0]) and padded[1] - 1 not in padded[0]


def _pads_no_image(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether there are not four axes, or others than the last two are padded."""
    padded = _padded_axes(node, scope)
    return padded and (padded[1] != 4 or not padded[0] <= {2, 3})


def _has_computed_k(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return None if the K of a TopK is computed at run time, else False."""
    computed = len(node.input) > 1 and scope.constant(node.input[1]) is None
    return None if computed else False


def _squeezes_open_dims(node: onnx.NodeProto, _place: int, scope: Scope) -> bool:
    """Return whether a Squeeze names no axes, and a dim of its input is open."""
    named = (len(node.input) > 1 and node.input[1]) or "axes" in values_of(node)
    shape = scope.value_type(node.input[0]).shape
    return not named and (shape is None or None in shape)


ATTRIBUTES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {"pads_only_at_end": _pads_only_at_end}
"""The conditions of `onnx_migrate.standard.targets.PREDICATES` on the attributes of a node."""

SIZES: Mapping[str, Callable[[onnx.NodeProto, int, Scope], bool | None]] = {
    "enlarges": _enlarges,
    "rounds_lengths": rounds_lengths,
    "samples_by_lengths": samples_by_lengths,
    "picks_otherwise": picks_otherwise,
    "has_more_indices_than_data": _has_more_indices_than_data,
    "has_more_than_four_axes": _has_more_than_four_axes,
    "has_zero_points_by_column": _has_zero_points_by_column,
    "is_of_float16": _is_of_float16,
    "loses_leading_axes": _loses_leading_axes,
    "branches_of_unknown_rank": _branches_of_unknown_rank,
    "spreads_channels": _spreads_channels,
    "has_a_batch": _has_a_batch,
    "tiles_after_others": _tiles_after_others,
    "pads_all_but_the_last": _pads_all_but_the_last,
    "pads_no_image": _pads_no_image,
    "is_cut_off": is_cut_off,
    "begins_in_padding": begins_in_padding,
    "divides_among_threads": divides_among_threads,
    "keeps_many_axes": keeps_many_axes,
    "reduces_many_axes": reduces_many_axes,
    "reduces_many_axes_before_others": reduces_many_axes_before_others,
    "has_computed_k": _has_computed_k,
    "squeezes_open_dims": _squeezes_open_dims,
}
"""Those on its shapes; a node comes with its place in the body. They return None if open dims decide; of indices and zero
points open shapes say nothing."""
