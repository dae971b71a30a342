"""A Resize of some axes as one of all."""

from __future__ import annotations

import numpy as np

from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.resize import sizes_are_lengths

from .node_context import axes_of
from .scales_and_sizes import Shape

__all__ = ["name_all_axes"]


def name_all_axes(rw: Rewriter, shape: Shape | None) -> str | None:
    """Write a node with the attribute `axes` without it; return why not where that cannot be done.

    The other axes get the scale 1, or their own length, which leaves them as they are. Scales, or sizes, that are
    not known yet, and lengths, are put in order at run time. `shape` is that of the input.
    """
    if shape is None:
        return "the number of axes of its input is not known"
    if rw.input(1):
        return "its roi is of these axes"
    if not sizes_are_lengths(rw.get("keep_aspect_ratio_policy", "stretch")):
        return "sizes come under a keep_aspect_ratio_policy"
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
