"""Writes a Resize of some axes (attribute `axes`, since opset 18) as a Resize of all axes."""

from __future__ import annotations

import numpy as np

from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import sizes_are_lengths

from .node_context import axes_of
from .scales_and_sizes import Shape

__all__ = ["name_all_axes"]


def name_all_axes(rw: Rewriter, shape: Shape | None) -> str | None:
    """Remove the attribute `axes` and return None; else return what prevents it.

    The other axes get the scale 1, or their own length as size, which leaves them unchanged. Scales, sizes and lengths
    that are not known are put in order at run time. `shape` is that of the input.
    """
    if shape is None:
        return "the rank of its input is not known"
    if rw.input(1):
        return "its roi is for these axes only"
    if not sizes_are_lengths(rw.get("keep_aspect_ratio_policy", "stretch")):
        return "its sizes are bounds under its keep_aspect_ratio_policy"
    axes = axes_of(rw.node, len(shape))
    index, hint = (3, "sizes") if rw.input(3) else (2, "scales")
    given = rw.constant_value(rw.input(index))
    others = [shape[axis] if index == 3 else 1 for axis in range(len(shape)) if axis not in axes]
    if given is not None and None not in others:
        whole = np.array(shape if index == 3 else [1] * len(shape), object)
        whole[axes] = given
        rw.set_input(index, rw.constant(whole.astype(given.dtype), hint))
    else:
        first = (
            rw.before("Shape", [rw.input(0)], hint="lengths")
            if index == 3
            else rw.constant(np.ones(len(shape), np.float32), "ones")
        )
        every = rw.before("Concat", [first, rw.input(index)], hint="every", axis=0)
        order = [len(shape) + axes.index(axis) if axis in axes else axis for axis in range(len(shape))]
        chosen = rw.constant(np.array(order, np.int64), "order")
        rw.set_input(index, rw.before("Gather", [every, chosen], hint=hint, axis=0))
    rw.drop("axes")
    return None
