"""The pools whose last windows, with ceil_mode, reach or begin beyond the input: releases compute different results for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx

from onnx_migrate.facts.scope import Scope

from .answers import any_of
from .misfits import values_of

__all__ = ["begins_in_padding", "is_cut_off"]


def is_cut_off(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether the last window along an axis reaches beyond the padded input; None if open dims decide."""
    return _of_axes(
        node, scope, lambda length, begin, end, window, stride: (length + begin + end - window) % stride != 0
    )


def begins_in_padding(node: onnx.NodeProto, _place: int, scope: Scope) -> bool | None:
    """Return whether a last window that ceil_mode adds lies in the padding at the end; None if open dims decide."""
    return _of_axes(
        node,
        scope,
        lambda length, begin, end, window, stride: (
            (length + begin + end - window + stride - 1) // stride * stride >= length + begin
        ),
    )


def _of_axes(
    node: onnx.NodeProto, scope: Scope, holds: Callable[[int, int, int, int, int], bool]
) -> bool | None:
    """Return whether something holds of the length, the pads, the window and the stride of an axis; open dims may decide."""
    settings = values_of(node)
    kernel: Sequence[int] | None = settings.get("kernel_shape")
    shape = scope.value_type(node.input[0]).shape
    if settings.get("auto_pad", "NOTSET") != "NOTSET":
        return False
    if shape is None or kernel is None:
        return None
    axes = len(kernel)
    pads, ones = settings.get("pads") or (0,) * 2 * axes, (1,) * axes
    strides, dilations = settings.get("strides") or ones, settings.get("dilations") or ones
    windows = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    return any_of(
        # A stride of 1 reads each length in the same way.
        None if length is None and stride > 1 else holds(length or 0, begin, end, window, stride)
        for length, begin, end, window, stride in zip(
            shape[2:], pads[:axes], pads[axes:], windows, strides, strict=False
        )
    )
