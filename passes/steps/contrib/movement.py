"""ONNX Runtime's operators (com.microsoft) that move elements: Pad, GridSample, Trilu and others that are now in the standard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Result, TensorProto, Value, formula
from onnx_migrate.rewrite.bounded_arrays import bounded


@formula("com.microsoft::Pad", since=1, form=13)
def pad(op: Op, data: Value, pads: Value, value: Value | None, *, mode: str = "constant") -> Value:
    """Pad becomes the standard's Pad, whose pads have one axis and whose value has none.

    Why equal: onnxruntime/core/providers/cpu/tensor/pad.cc is the kernel of both.
    """
    pads = op.known(pads)
    flat = pads if pads.rank == 1 else pads.reshape(-1)
    return op.Pad(data, flat.cast(TensorProto.INT64), _scalar(op, value), mode=mode)


def _scalar(op: Op, value: Value | None) -> Value | None:
    """Return a value of one element as a tensor without axes."""
    if value is None or value.rank == 0:
        return value
    return op.Reshape(value, op.constant([]).cast(TensorProto.INT64))


@formula("com.microsoft::GridSample", since=1, form=16)
def grid_sample(
    op: Op,
    x: Value,
    grid: Value,
    *,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: int = 0,
) -> Value:
    """GridSample becomes the standard's GridSample, which renamed two modes at opset 20.

    Why equal: onnxruntime/core/providers/cpu/tensor/grid_sample.cc is the kernel of both. The results are equal bit for bit.
    """
    if op.version >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return op.GridSample(x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)


@formula("com.microsoft::Trilu", since=1, form=14)
def trilu(op: Op, x: Value, k: Value | None, *, upper: int = 1) -> Value:
    """Trilu becomes the standard's Trilu.

    Why equal: onnxruntime/core/providers/cpu/tensor/trilu.cc is the kernel of both. The results are equal bit for bit.
    """
    return op.Trilu(x, _scalar(op, k), upper=upper)


@formula("com.microsoft::GatherND", since=1, form=11)
def gather_nd(op: Op, data: Value, indices: Value) -> Value:
    """GatherND becomes the standard's GatherND, whose indices are int64.

    Why equal: onnxruntime/core/providers/cpu/tensor/gather_nd.cc is the kernel of both. The results are equal bit for bit.
    """
    return op.GatherND(data, indices.cast(TensorProto.INT64))


@formula("com.microsoft::Range", since=1, form=11)
def range_(op: Op, start: Value, limit: Value, delta: Value | None) -> Value:
    """Range becomes the standard's Range. Without its third input it counts by 1.

    Why equal: onnxruntime/core/providers/cpu/generator/range.cc is the kernel of both. The results are equal bit for bit.
    """
    step = op.constant(1, start) if delta is None else delta
    first, last, by = (_scalar(op, value) for value in (start, limit, step))
    return op.Range(first, last, by)


@formula("com.microsoft::ExpandDims", since=1, form=13)
def expand_dims(op: Op, x: Value, axis: Value) -> Value:
    """ExpandDims becomes Unsqueeze at one axis.

    Why equal: onnxruntime/contrib_ops/cpu/expand_dims.h does the same. A negative axis counts from the end of the result. The
    results are equal bit for bit.
    """
    number = int(axis.need_constant("axis").reshape(-1)[0])
    return op.Unsqueeze(x, [number])


@formula("com.microsoft::Unique", since=1, form=11)
def unique(op: Op, x: Value) -> Result:
    """Unique becomes the standard's Unique without its second output, in the order of the first occurrences.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc says so. The results are equal bit for bit.
    """
    outputs = op.several("Unique", 4, x, sorted=0)
    return outputs[0], outputs[2], outputs[3]


@formula("com.microsoft::CropAndResize", since=1, form=13, exactness=EQUIVALENT)
def crop_and_resize(
    op: Op,
    x: Value,
    rois: Value,
    batch_indices: Value,
    crop_size: Value,
    *,
    extrapolation_value: float = 0.0,
    mode: str = "bilinear",
) -> Value:
    """CropAndResize becomes Gathers that read the nearest element, or the mean of four, at positions between a box's corners.

    What changes: the channels become the last axis, so that a Gather reads rows. The mean weighs its four elements by
    distance. Positions outside of the image get `extrapolation_value`.

    Why equal: onnxruntime/contrib_ops/cpu/crop_and_resize.cc does the same.
    """
    height, width = op.size_of(x, 2), op.size_of(x, 3)
    top, left, bottom, right = op.several("Split", 4, rois, [1] * 4, axis=1)
    count = crop_size.need_constant("size of the crops").tolist()
    rows = op.Unsqueeze(_between(op, top, bottom, count[0], height), [2])
    columns = op.Unsqueeze(_between(op, left, right, count[1], width), [1])
    first = op.Unsqueeze(batch_indices.cast(TensorProto.INT64), [1, 2]) * height
    flat = op.Reshape(op.Transpose(x, perm=[0, 2, 3, 1]), op.Concat([-1], op.size_of(x, 1), axis=0))

    def at(row: Value, column: Value) -> Value:
        indices = (first + row.cast(TensorProto.INT64)) * width + column.cast(TensorProto.INT64)
        return op.Gather(flat, indices, axis=0)

    point = [op.Max(line, 0.0) for line in (rows, columns)]
    sampled = at(*(op.Floor(line + 0.5) for line in point)) if mode == "nearest" else _mean(op, at, *point)
    outside = op.Unsqueeze((rows < 0) | (columns < 0), [3])
    sampled = op.Where(outside, op.constant(float(extrapolation_value), sampled), sampled)
    return op.Transpose(sampled, perm=[0, 3, 1, 2])


def _between(op: Op, start: Value, end: Value, count: int, size: Value) -> Value:
    """Return `count` positions from start to end, (boxes, count). Those outside of 0 … size - 1 become -1."""
    last = size.cast(start.need_dtype()) - 1
    if count == 1:
        positions = (start + end) * 0.5 * last
    else:
        steps = np.arange(bounded(count - 1), dtype=start.numpy_type)[None]
        inner = start * last + (end - start) * last / (count - 1) * op.constant(steps)
        positions = op.Concat(inner, end * last, axis=1)
    return op.Where(positions > last, op.constant(-1, positions), positions)


def _mean(op: Op, at: Callable[[Value, Value], Value], rows: Value, columns: Value) -> Value:
    """Return the mean of the four elements around a position, weighed by distance: (boxes, rows, columns, channels)."""
    north, west, east = op.Floor(rows), op.Floor(columns), op.Ceil(columns)
    along, down = op.Unsqueeze(columns - west, [3]), op.Unsqueeze(rows - north, [3])
    upper, lower = (at(row, west) + (at(row, east) - at(row, west)) * along for row in (north, op.Ceil(rows)))
    return upper + (lower - upper) * down


@formula("com.microsoft::Inverse", since=1, form=13)
def inverse(op: Op, x: Value) -> Value:
    """The inverse of a 2 by 2 or 3 by 3 matrix becomes its adjugate divided by its determinant.

    What changes: Gathers rotate rows and columns, and their products form the adjugate. Half floats are computed in float32.

    Why equal: this is Cramer's rule. ONNX Runtime's kernel factors the matrix: the largest difference seen is 3e-8 of the
    largest number.

    Limits: onnx-migrate refuses larger matrices, and those whose size is not fixed.
    """
    size = (x.shape or (None,))[-1]
    if size not in (2, 3):
        op.refuse("onnx-migrate replaces only matrices of a fixed size, up to 3 by 3", code="needs-shape")
    source, row, column = x.wide(), x.need_rank() - 2, x.need_rank() - 1

    def turned(down: int, along: int) -> Value:
        rows = op.Gather(source, (np.arange(size) + down) % size, axis=row)
        return op.Gather(rows, (np.arange(size) + along) % size, axis=column)

    if size == 2:
        cofactors = turned(1, 1) * np.array([[1, -1], [-1, 1]], source.numpy_type)
    else:  # their signs follow from the cyclic order
        cofactors = turned(1, 1) * turned(2, 2) - turned(1, 2) * turned(2, 1)
    determinant = op.ReduceSum(op.Slice(source * cofactors, [0], [1], [row]), [column])
    turned_over = op.Transpose(cofactors, perm=[*range(row), column, row])
    return (turned_over / determinant).cast(x.need_dtype())


@formula("com.microsoft::UnfoldTensor", since=1, form=11)
def unfold_tensor(op: Op, x: Value, *, size: int, dim: int = -1, step: int = 1) -> Value:
    """UnfoldTensor becomes a Gather of the windows along an axis, and a Transpose that moves the window to the last axis.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc says so, like torch.Tensor.unfold. The results
    are equal bit for bit.
    """
    rank = x.need_rank()
    axis = dim % rank
    starts = range(0, x.need_size(axis) - size + 1, step)
    bounded(len(starts) * size)
    windows = np.array(starts)[:, None] + np.arange(size)
    taken_windows = op.Gather(x, windows, axis=axis)
    return op.Transpose(taken_windows, perm=[at for at in range(rank + 1) if at != axis + 1] + [axis + 1])
