"""Scatter, ScatterElements and ScatterND: reductions, and ScatterND below opset 11."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import impossible, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers, size_of
from .flat_index import Dims, non_negative, to_int64
from .gather import index_length, row_numbers
from .scatter_rounds import REDUCTIONS, reduce_in_rounds

impossible(
    "Scatter",
    9,
    why="no operator below opset 9 writes elements at places that are computed",
)


@lowering("ScatterElements", "ScatterND", leaves=18)
def scatter_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`reduction` cannot be max or min: the elements are gathered, compared with the updates and scattered back.

    What changes: where the indices are known to differ, max and min become GatherElements or GatherND, Max or Min, and the
    node without a reduction. Else the updates are sorted by the element they belong to, and a Loop reduces the first, second,
    third … update of every element; known indices give those rounds without a Loop if they are few.

    Why equal: in one round no element is updated twice, and the updates of each are taken in their order.

    Limits: the ranks of data and indices must be known for rounds. ONNX Runtime drops a NaN of the data here; Max and Min
    keep it.
    """
    if rw.get("reduction", "none") in ("max", "min"):
        _reduce_apart(node, rw)


@lowering("ScatterElements", "ScatterND", leaves=16)
def scatter_16_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`reduction` does not exist: elements are gathered, added to or multiplied, and scattered back.

    What changes: none is dropped. Where the indices are known to differ, add and mul become GatherElements or GatherND, Add
    or Mul, and the node without a reduction. Else the updates are sorted by the element they belong to, and a Loop reduces the
    first, second, third … update of every element; known indices give those rounds without a Loop if they are few.

    Why equal: in one round no element is updated twice, and the updates of each are taken in their order.

    Limits: the ranks of data and indices must be known for rounds.
    """
    if rw.get("reduction", "none") != "none":
        _reduce_apart(node, rw)
    rw.drop("reduction")


@lowering("ScatterElements", leaves=11)
def scatter_elements_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """ScatterElements was named Scatter, which takes no negative indices.

    What changes: the name. The size of the axis is added to negative indices.

    Why equal: version 9 of Scatter has the same text, but for the range of indices; ONNX Runtime 1.3 refuses negative ones
    there.
    """
    axis, data = int(rw.get("axis", 0)), rw.input(0)
    if axis < 0:
        axis += rw.need_rank(data)
        rw.set("axis", axis)
    indices = rw.input(1)
    known = rw.known(indices)
    if known is None or bool((known < 0).any()):
        rw.set_input(1, non_negative(rw, to_int64(rw, indices), size_of(rw, data, axis)))
    rw.rename("Scatter")


@lowering("ScatterND", leaves=11)
def scatter_nd_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no ScatterND: Scatter writes rows of the data, whose first axes are flattened, by their number.

    What changes: data, indices and updates are flattened to two axes. The number of a row is the sum of each index times the
    stride of its axis, and is repeated for the elements of the row. Negative indices count from the end of their axis.

    Why equal: an index of q numbers selects a row of the first q axes (onnx/defs/tensor/defs.cc). Values are moved, never
    computed with.

    Limits: the ranks of data and indices, and the last dim of the indices must be known. Data in which an axis after the first
    q is empty are refused by Reshape when the model runs.
    """
    data, indices, updates = given = rw.input(0), rw.input(1), rw.input(2)
    sizes = Dims(rw, data)
    count, rank = index_length(rw, indices), sizes.rank
    split = rw.need_rank(indices) - 1
    whole, flat = sizes.some(range(rank)), integers(rw, -1)
    numbers = row_numbers(rw, indices, count, sizes)
    if count == rank:
        if rank > 1:
            data = rw.before("Reshape", [data, flat], hint="flat")
        if split != 1:
            numbers = rw.before("Reshape", [numbers, flat], hint="numbers")
            updates = rw.before("Reshape", [updates, flat], hint="updates")
    else:
        numbers = rw.before("Reshape", [numbers, integers(rw, -1, 1)], hint="numbers")
        if (count, rank) != (1, 2):
            data = rw.before("Flatten", [data], hint="rows", axis=count)
        if (split, rank - count) != (1, 1):
            updates = rw.before("Flatten", [updates], hint="updates", axis=split)
        shape = rw.before("Shape", [updates], hint="shape")
        numbers = rw.before("Expand", [numbers, shape], hint="numbers")
    rw.rename("Scatter")
    rw.set("axis", 0)
    for index, name in enumerate((data, numbers, updates)):
        rw.set_input(index, name)
    if data != given[0]:
        output = rw.output(0)
        rw.after("Reshape", [rw.detach_output(0, "flat"), whole], [output])


def _reduce_apart(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Write the reduction of a node as nodes of their own, and let the node scatter the results."""
    kind = str(rw.pop("reduction"))
    by_element = node.op_type == "ScatterElements"
    if kind not in REDUCTIONS:
        rw.refuse(
            f"has reduction={kind!r}, which is none of none, {', '.join(sorted(REDUCTIONS))}",
            code="no-such-value",
        )
    if not _distinct(rw, by_element):
        reduce_in_rounds(rw, kind)
        return
    axis = rw.get("axis", 0) if by_element else None
    gather = "GatherElements" if by_element else "GatherND"
    old = rw.before(gather, [rw.input(0), rw.input(1)], hint="old", axis=axis)
    rw.set_input(2, rw.before(REDUCTIONS[kind], [old, rw.input(2)], hint="reduced"))
    rw.note(f"reduction {kind} is computed on the gathered elements")


def _distinct(rw: LoweringRewriter, by_element: bool) -> bool:
    """Return whether the indices are known, and select no element twice."""
    indices = rw.known(rw.input(1))
    if indices is None:
        return False
    axis = int(rw.get("axis", 0)) if by_element else -1
    if bool((indices < 0).any()) and bool((indices >= 0).any()):
        # The same place may be counted from both ends.
        shape = rw.shape(rw.input(0))
        if shape is None or any(size is None for size in shape):
            return False
        sizes = np.array(shape, np.int64)
        size = sizes[axis] if by_element else sizes[: indices.shape[-1]]
        indices = np.where(indices < 0, indices + size, indices)
    if by_element:
        ordered = np.sort(indices, axis=axis)
        return not bool((np.diff(ordered, axis=axis) == 0).any())
    rows = indices.reshape(-1, indices.shape[-1])
    return len(np.unique(rows, axis=0)) == len(rows)
