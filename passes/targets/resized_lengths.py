"""The Resizes that runtimes sample elsewhere than the standard, by their lengths and scales."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from onnx_migrate.facts.scope import Scope
from onnx_migrate.standard.resize import (
    Floats,
    exact_length,
    picked,
    run_length,
    samples_alike,
    scale_of_size,
)

from .answers import any_of
from .misfits import value_of, values_of

__all__ = ["picks_otherwise", "rounds_lengths", "samples_by_lengths"]

_ANY_LENGTH = 64
"""The length that represents all lengths if the scale is a whole number: the indices recur."""


def rounds_lengths(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether a length times its scale is no whole number; None if open dims decide."""
    if _has_sizes(node):
        return False
    return _differs(node, scope, lambda length, scale, _: exact_length(length, scale) is None)


def samples_by_lengths(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether the quotient of the lengths samples elsewhere than the scale; None if open dims decide."""
    coordinates, rounding = _modes(node)
    if rounding is None:
        return None

    def differs(length: int, scale: float, size: int) -> bool:
        if value_of(node, values_of(node), "mode") != "nearest":
            return not samples_alike(length, scale, coordinates)
        by_length = float(scale_of_size(length, size))
        own, other = (picked(length, size, by, coordinates, rounding) for by in (scale, by_length))
        return not np.array_equal(own, other)

    return False if _has_sizes(node) else _differs(node, scope, differs)


def picks_otherwise(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether OpenCV 4.8 to 4.14 pick other elements in a nearest Resize; None if open dims decide."""
    coordinates, rounding = _modes(node)
    if rounding is None:
        return None

    def differs(length: int, scale: float, size: int) -> bool:
        own = picked(length, size, scale, coordinates, rounding)
        return not np.array_equal(own, _picked_by_opencv(length, size, coordinates))

    return _differs(node, scope, differs)


def _picked_by_opencv(length: int, size: int, coordinates: str) -> Floats:
    """Return the index that OpenCV picks for each element: it does not read nearest_mode."""
    # In float32, a coordinate can fall just below the whole number that exact arithmetic gives.
    at, half = np.arange(size, dtype=np.float32), np.float32(0.5)
    ratio = np.float32(length) / np.float32(size)
    if coordinates == "align_corners":
        at = at * (np.float32(length - 1) / np.float32(max(size - 1, 1))) + half
    else:
        at = (at if coordinates == "asymmetric" else at + half) * ratio
    indices: Floats = np.clip(np.floor(at), 0, length - 1)
    return indices


def _modes(node: onnx.NodeProto) -> tuple[str, str | None]:
    """Return the coordinate transformation and the rounding of a Resize; that of opset 10 has two inputs, and none of them.

    A rounding that each call of a function sets is None.
    """
    # Resize-10 has no coordinate mode, and computes asymmetric.
    if len(node.input) == 2:
        return "asymmetric", "floor"
    settings = values_of(node)
    rounding: str | None = value_of(node, settings, "nearest_mode")
    return str(value_of(node, settings, "coordinate_transformation_mode")), rounding


def _has_sizes(node: onnx.NodeProto) -> bool:
    return len(node.input) > 3 and bool(node.input[3])


_LONGEST = 1 << 20
"""Elements of an axis up to which the picked elements are compared one by one; nobody resizes an image to more."""


def _differs(node: onnx.NodeProto, scope: Scope, differs: Callable[[int, float, int], bool]) -> bool | None:
    """Return whether an axis differs, given with its length, its scale and its new length; None if open dims decide."""
    by_sizes = _has_sizes(node)
    factors = scope.constant(node.input[3 if by_sizes else min(2, len(node.input) - 1)])
    shape = scope.value_type(node.input[0]).shape
    if factors is None or (shape is not None and len(shape) != factors.size):
        return None

    def answer(length: int | None, value: Any) -> bool | None:
        if length is None and (by_sizes or not value.is_integer()):
            return None
        # Of a length that is not known, a long axis stands for all.
        count = length or _ANY_LENGTH
        size = value if by_sizes else run_length(count, value)
        # Such a length cannot be run.
        if size > _LONGEST:
            return None
        return bool(size) and differs(count, float(scale_of_size(count, size)) if by_sizes else value, size)

    axes = zip(shape or [None] * factors.size, factors.tolist(), strict=True)
    return any_of(answer(length, value) for length, value in axes)
