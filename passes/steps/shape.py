"""Steps of Shape, Size, Flatten, Squeeze, Split and Gather; known lengths allow constants, Reshapes and Slices instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from onnx import numpy_helper

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import Op, Value, formula

_END = int(np.iinfo(np.int64).max)


@formula("Shape", since=15)
def shape_15_down(op: Op, x: Value, *, start: int, end: int | None) -> Value:
    """`start` and `end` become a Slice of all lengths.

    What changes: if they leave lengths out, a Slice with the same bounds is written after the node.

    Why equal: both clamp their bounds to the number of axes, and both count negative ones from the end.
    """
    whole = op.itself(x, start=None, end=None)
    if start == 0 and end is None:
        return whole
    return op.Slice(whole, [start], [_END if end is None else end], [0])


@formula("Shape", since=1)
def shape(op: Op, x: Value) -> Value:
    """It is a constant if all lengths are fixed.

    Why equal: the text. Bit for bit.

    Limits: the shape must be fixed; below opset 9 a Constant holds floats only.
    """
    array = op.rw.known(op.rw.output(0)) if op.rw.output(0) else None
    if array is None or op.version < 9:
        op.refuse(
            f"the shape of {x.name!r} is not fixed",
            code="needs-shape",
            hint=FIX_DIMS,
        )
    return op.Constant(value=numpy_helper.from_array(array))


@formula("Size", since=1)
def size(op: Op, x: Value) -> Value:
    """It is the product of the lengths.

    Why equal: the text. Bit for bit.
    """
    return op.ReduceProd(op.Shape(x), [0], keepdims=False)


@formula("Flatten", since=1)
def flatten(op: Op, x: Value, *, axis: int) -> Value:
    """It is a Reshape to two axes.

    Why equal: the text. Bit for bit.

    Limits: the lengths before `axis` or those from it on must be fixed, unless `axis` is 0 or 1.
    """
    if axis < 0:
        axis += x.need_rank()
    if axis in (0, 1):
        return x.reshape(0 if axis else 1, -1)
    lengths = x.shape or (None,) * (axis + 1)
    before, behind = _product(lengths[:axis]), _product(lengths[axis:])
    if before == behind == -1:
        op.refuse(
            f"the lengths of {x.name!r} before axis {axis}, or those behind, must be fixed",
            code="needs-shape",
        )
    return x.reshape(before, behind if before == -1 else -1)


def _product(lengths: Sequence[int | None]) -> int:
    """Return the number of elements for Reshape: -1 if a length is open, or 0, which Reshape would read as another length."""
    sizes = [size for size in lengths if size]
    return math.prod(sizes) if len(sizes) == len(lengths) else -1


@formula("Squeeze", "Unsqueeze", since=1)
def squeeze(op: Op, x: Value, axes: Value | None) -> Value:
    """It is a Reshape to the shape that results.

    What changes: Reshape. It infers at most one length; the others are written.

    Why equal: the text. Bit for bit.

    Limits: at most one length of the result may be open, unless it stays at the same place.
    """
    output = op.rw.output(0)
    lengths, own_shape = op.output_shape(), x.shape
    if lengths is None or own_shape is None:
        op.refuse(f"the shape of {output!r} must be known", code="needs-shape")
    axis_numbers = op.rw.get("axes")
    if axis_numbers is None and axes is not None:
        array = axes.constant
        axis_numbers = None if array is None else [int(axis) for axis in array.reshape(-1)]
    elif axis_numbers is None:  # of a Squeeze: all that are 1
        axis_numbers = [0]
    rank = max(len(own_shape), len(lengths))
    same = 0 if axis_numbers is None else min((axis % rank for axis in axis_numbers), default=rank)
    numbers = _reshape_to(same, lengths)
    if numbers is None:
        op.refuse(
            f"more than one length of {output!r} is open",
            code="needs-shape",
            hint=FIX_DIMS,
        )
    return x.reshape(*numbers)


def _reshape_to(same: int, wanted: Sequence[int | None]) -> list[int] | None:
    """Return the shape input of a Reshape that keeps the first `same` axes: 0 for these, -1 for one open one."""
    if 0 in wanted:  # which Reshape takes for a length that stays
        return None
    numbers = [0 if size is None and index < same else size for index, size in enumerate(wanted)]
    if sum(size is None for size in numbers) > 1:
        return None
    return [-1 if size is None else size for size in numbers]


@formula("Split", since=1)
def split(op: Op, x: Value, lengths: Value | None, *, axis: int) -> list[Value | None]:
    """Each output is a Slice.

    Why equal: the text. Bit for bit.

    Limits: the lengths must be constants, or the length of the axis fixed.
    """
    counts = _split_lengths(op, x, lengths if op.version >= 13 else None, axis)
    if axis < 0 and op.version < 10:
        axis += x.need_rank()
    return [
        op.Slice(x, [end - count], [end], [axis]) if name else None
        for name, count, end in zip(op.rw.node.output, counts, accumulate(counts), strict=True)
    ]


def _split_lengths(op: Op, x: Value, lengths: Value | None, axis: int) -> list[int]:
    attribute_lengths = op.rw.get("split")
    if attribute_lengths is not None:
        return [int(length) for length in attribute_lengths]
    if lengths is not None:
        array = lengths.constant
        if array is None:
            op.refuse(f"its lengths ({lengths.name!r}) are computed at run time", code="needs-constant")
        return [int(length) for length in array.reshape(-1)]
    length = x.need_size(axis)
    count = len(op.rw.node.output)
    each = -(-length // count)
    return [max(min(each, length - each * number), 0) for number in range(count)]


@formula("Gather", since=1)
def gather(op: Op, x: Value, indices: Value, *, axis: int) -> Value:
    """One index, or a few, are Slices.

    What changes: a Slice for each run of indices that follow each other, Concat of these, and Squeeze for a single index.

    Why equal: the text. Bit for bit.

    Limits: the indices must be constants of at most one axis, and not more than 16 runs.
    """
    array = indices.constant
    if array is None:
        op.refuse(f"its indices ({indices.name!r}) are computed at run time", code="needs-constant")
    if axis < 0:
        axis += x.need_rank()
    runs = _runs([int(index) for index in array.reshape(-1)])
    if array.ndim > 1 or not 0 < len(runs) <= _MOST_RUNS:
        op.refuse(
            f"its indices, of shape {list(array.shape)}, are more than {_MOST_RUNS} slices", code="no-equal"
        )
    parts = [op.Slice(x, [start], [end or _END], [axis]) for start, end in runs]
    whole = parts[0] if len(parts) == 1 else op.Concat(*parts, axis=axis)
    return whole if array.ndim else op.Squeeze(whole, [axis])


_MOST_RUNS = 16


def _runs(indices: Sequence[int]) -> list[tuple[int, int]]:
    """Return the bounds of slices that have elements at these places, one after the other."""
    runs: list[tuple[int, int]] = []
    for index in indices:
        if runs and runs[-1][1] == index != 0:
            runs[-1] = (runs[-1][0], index + 1)
        else:
            runs.append((index, index + 1))
    return runs
