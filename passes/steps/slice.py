"""Slice, whose bounds became inputs (opset 10) and whose axes count from the front below 11, and Gather."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.formula import Op, Value, formula
from onnx_migrate.errors import InvalidModel
from onnx_migrate.messages import listed
from onnx_migrate.plugins import Exactness, LoweringRewriter, Rewriter, adapter, compatible, lowering

compatible("Slice", 11, reason="negative axes are allowed, and steps of 0 are not")
compatible("Slice", 13, reason="more types are allowed, and the clamping of starts and ends is specified")
compatible("Gather", 11, reason="negative indices are allowed")


@adapter("Slice", to=10)
def slice_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`starts`, `ends` and `axes` move from attributes to inputs.

    What changes: omitted axes are set to the first ones, as many as there are starts, which was the default. From
    opset 10 on the standard's default is all axes.
    """
    starts = rw.attribute("starts")
    if rw.attribute("axes") is None and starts is not None and not starts.ref_attr_name:
        rw.set("axes", list(range(len(starts.ints))))
    for index, name in enumerate(("starts", "ends", "axes"), start=1):
        rw.attribute_to_input(name, index)


_MOST_AXES = 64
"""The most axes of a tensor in any runtime."""

_ASSUMED = "runtimes are assumed to take a negative axis below opset 11"


@lowering("Slice", leaves=11)
def slice_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` are counted from the front.

    What changes: negative ones among constant axes are replaced by the same ones counted from the front.

    Why equal: version 11 adds negative axes, and forbids steps of 0.

    Limits: if the rank is unknown or the axes are computed at run time, they stay, and the report says so. ONNX Runtime
    supports negative axes at opset 10.
    """
    if not rw.input(3):
        return
    axes = rw.known(rw.input(3))
    if axes is not None and (axes >= 0).all():
        return
    rank = rw.rank(rw.input(0))
    if axes is None or rank is None:
        rw.note(
            f"{_ASSUMED}, since the {'axes are' if axes is None else 'rank is'} unknown", Exactness.ASSUMED
        )
        return
    rw.set_input(3, rw.constant(np.where(axes < 0, axes + rank, axes).astype(axes.dtype), "axes"))


@lowering("Gather", leaves=11)
def gather_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Indices and `axis` are counted from the front.

    What changes: a negative axis, and negative ones among constant indices, are replaced by the same ones counted from the
    front.

    Why equal: version 11 adds negative indices, and nothing else.

    Limits: a negative axis stays if the rank is unknown, and negative indices stay if the length is unknown. Indices that are
    computed at run time always stay. The report says so. ONNX Runtime supports negative indices and axes at opset 10 and below.
    """
    source, axis = rw.input(0), int(rw.get("axis", 0))
    shape = rw.shape(source)
    indices = rw.known(rw.input(1))
    if axis < 0 and shape is not None:
        axis += len(shape)
        rw.set("axis", axis)
    elif axis < 0:
        rw.note(f"{_ASSUMED}, since the rank is unknown", Exactness.ASSUMED)
    if indices is not None and (indices >= 0).all():
        return
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if indices is None or length is None:
        subject = "the indices, computed at run time," if indices is None else "the negative indices"
        rw.note(f"runtimes are assumed to count {subject} from the end below opset 11", Exactness.ASSUMED)
        return
    positive = np.where(indices < 0, indices + length, indices).astype(indices.dtype)
    rw.set_input(1, rw.constant(positive, "indices"))


@formula("Slice", since=10)
def slice_10_down(
    op: Op, x: Value, starts: Value, ends: Value, axes: Value | None, steps: Value | None
) -> Value:
    """`starts`, `ends` and `axes` move from inputs to attributes.

    What changes: constant bounds become attributes. An axis with a step other than 1, or with bounds computed at run time,
    becomes a Gather of the indices that the Slice reads. The indices are constants if bounds and length are known. Otherwise a
    comparison of all indices with the bounds selects them.

    Why equal: the changelog of version 10 moves the bounds, and adds the steps. Bounds are clamped as the text of Slice-13
    says.

    Limits: axes and steps must be constants. Indices that are selected at run time need opset 9.
    """
    first, last = starts.constant, ends.constant
    strides = [] if steps is None else steps.need_constant("steps").reshape(-1).tolist()
    axis_numbers = (
        list(range(len(strides) or _count(x, starts)))
        if axes is None
        else axes.need_constant("axes").reshape(-1).tolist()
    )
    if len(axis_numbers) > _MOST_AXES:
        raise InvalidModel(
            f"slices {len(axis_numbers):,} axes, and a tensor has {_MOST_AXES} at most", code="invalid-node"
        )
    strides = strides or [1] * len(axis_numbers)
    counts = [len(axis_numbers), len(strides), *(bound.size for bound in (first, last) if bound is not None)]
    if len(set(counts)) > 1:
        op.refuse(
            "its starts, ends, axes and steps must have the same number of elements, and have"
            f" {listed(map(str, counts))}",
            code="invalid-node",
        )
    fixed = first is not None and last is not None
    plain = [index for index, step in enumerate(strides) if step == 1 and fixed]
    for index, axis in enumerate(axis_numbers):
        if index in plain:
            continue
        at = _constant_indices(op, x, (starts, ends), axis, strides[index], index)
        if at is None:
            for position, bound, name in ((1, first, "starts"), (2, last, "ends")):
                if bound is None:
                    op.rw.use_at_run_time(position, name)
            at = _selected_indices(op, x, (starts, ends), axis, strides[index], index)
        x = op.Gather(x, at, axis=axis)
    if not plain or first is None or last is None:
        return x
    bounds = [
        [int(values[index]) for index in plain]
        for values in (first.reshape(-1), last.reshape(-1), axis_numbers)
    ]
    return op.write("Slice", x, starts=bounds[0], ends=bounds[1], axes=bounds[2])


def _count(x: Value, starts: Value) -> int:
    """Return how many axes are cut if `axes` is not given: as many as there are starts."""
    shape = starts.shape
    if shape is not None and len(shape) == 1 and shape[0] is not None:
        return shape[0]
    return x.need_rank()


def _constant_indices(
    op: Op, x: Value, bounds: tuple[Value, Value], axis: int, step: int, index: int
) -> Value | None:
    """Return constant indices, None if a bound or the length of the axis is not known."""
    starts, ends = (op.rw.partly_known(bound.name) for bound in bounds)
    shape = x.shape
    length = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    if starts is None or ends is None or length is None:
        return None
    start, end = starts[index], ends[index]
    if start is None or end is None:
        return None
    start, end = (bound + length if bound < 0 else bound for bound in (start, end))
    if step > 0:
        indices = range(max(start, 0), min(end, length), step)
    else:
        indices = range(max(min(start, length - 1), 0), max(end, -1), step)
    return op.constant(np.array(indices if length else [], np.int64))


def _selected_indices(
    op: Op, x: Value, bounds: tuple[Value, Value], axis: int, step: int, index: int
) -> Value:
    """Return the indices that a Slice reads along an axis."""
    zero, unit, stride = (op.constant([number]) for number in (0, 1, abs(step)))
    length = op.Gather(op.Shape(x), [axis], axis=0)
    ones = op.ConstantOfShape(length, value=onnx.helper.make_tensor("", TensorProto.INT64, [1], [1]))
    positions = op.Squeeze(op.NonZero(ones), [0])
    last = length - unit
    start, end = (_from_the_front(op, bound, length, index) for bound in bounds)
    if step < 0:  # count from the end of the axis: the index i is n - 1 - i there
        start, end = last - start, last - end
        start = start + (last < start).cast(TensorProto.INT64) * (last - start)
    below = (start < zero).cast(TensorProto.INT64)
    start = start * (unit - below)
    chosen = ~(positions < start) & (positions < end)
    if abs(step) != 1:
        offset = positions - start
        chosen = chosen & (offset == offset / stride * stride)
    selected = op.Squeeze(op.NonZero(chosen), [0])
    return selected if step > 0 else last - selected


def _from_the_front(op: Op, bounds: Value, length: Value, index: int) -> Value:
    """Return one bound of several as a vector of one, counted from the front."""
    bound = op.Gather(op.Cast(bounds, to=TensorProto.INT64), [index], axis=0)
    negative = (bound < op.constant([0])).cast(TensorProto.INT64)
    return bound + negative * length
