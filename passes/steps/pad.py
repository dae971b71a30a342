"""Pad: pads and value became inputs (11), axes came with opset 18 and the mode wrap with 19; Concat or Gather can replace it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.steps.formula import FLOATS, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Rewriter, adapter, compatible

_LARGEST = 2**20
"""The most indices that become a constant; more are counted at run time."""

_ZERO, _ONE, _TWO = (np.array([number]) for number in (0, 1, 2))

compatible(
    "Pad",
    18,
    reason="the optional input axes was added; without it the pads are those of all axes, as before",
)
compatible("Pad", 19, reason="the mode wrap was added")


@adapter("Pad", to=2)
def pad_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The attribute `paddings` is renamed to `pads`."""
    paddings = rw.attribute("paddings")
    if paddings is not None:
        paddings.name = "pads"


@adapter("Pad", to=11)
def pad_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`pads` and `value` move from attributes to inputs, the value in the data's type.

    What changes: a value of 0, which is the default, is omitted. A value that the mode does not use is omitted too.
    """
    rw.attribute_to_input("pads", 1)
    value, mode = rw.attribute("value"), rw.attribute("mode")
    unread = mode is not None and not mode.ref_attr_name and mode.s != b"constant"
    if value is not None and (unread or not (value.ref_attr_name or value.f)):
        rw.drop("value")
    rw.attribute_to_input("value", 2, like=node.input[0])


# Downward


@formula("Pad", since=19)
def pad_19_down(
    op: Op, x: Value, pads: Value, value: Value | None, axes: Value | None, *, mode: str
) -> Value:
    """The mode wrap goes away: the elements of each padded axis are gathered.

    What changes: a node in mode wrap becomes a Gather for each padded axis, whose indices are the places of the axis
    modulo its length. They are constants if pads and length are, and computed otherwise. Negative pads cut the axis
    before it is wrapped, as in ONNX Runtime.

    Why equal: the text of Pad-19; bit for bit, since elements are moved only.

    Limits: axes must be constants, and if there are none, the rank must be known.
    """
    if mode != "wrap":
        return op.itself(x, pads, value, axes)
    constant_axes = None if axes is None else axes.need_constant("axes").reshape(-1).tolist()
    if pads.constant is None:
        op.rw.use_at_run_time(1, "pads")
    return _gathered(op, x, pads, "wrap", constant_axes)


@formula("Pad", since=18)
def pad_18_down(op: Op, x: Value, pads: Value, value: Value | None, axes: Value | None) -> Value:
    """`axes` go away: the pads are those of all axes, 0 for each axis that `axes` did not contain.

    What changes: constant pads are spread over all axes. If pads, axes or the rank are not known, they are spread at run time.

    Why equal: the changelog of version 18 adds the input, which names the axes that the pads are of.
    """
    if axes is None:
        return op.itself(x, pads, value)
    axis_array, pad_array, rank = axes.constant, pads.constant, x.rank
    for index, array, name in ((1, pad_array, "pads"), (3, axis_array, "axes")):
        if array is None:
            op.rw.use_at_run_time(index, name)
    if axis_array is None or rank is None:
        return op.itself(x, _scattered_pads(op, x, pads, axes), value)
    front = [int(axis) + (rank if axis < 0 else 0) for axis in axis_array.reshape(-1)]
    entries = [*front, *(axis + rank for axis in front)]
    if pad_array is not None:
        full = np.zeros(2 * rank, np.int64)
        full[entries] = pad_array.reshape(-1)
        return op.itself(x, full, value)
    order = np.full(2 * rank, len(entries))
    order[entries] = range(len(entries))
    return op.itself(x, op.Gather(op.Concat(pads, [0], axis=0), order, axis=0), value)


def _scattered_pads(op: Op, x: Value, pads: Value, axes: Value) -> Value:
    """Return the pads of all axes if the rank or the axes are known only at run time."""
    rank = op.Shape(op.Shape(x))
    zeros = op.ConstantOfShape(rank + rank, value=helper.make_tensor("", TensorProto.INT64, [1], [0]))
    axes = op.Cast(axes, to=TensorProto.INT64)
    begins = axes + op.Cast(axes < op.constant([0]), to=TensorProto.INT64) * rank
    ends = begins + rank
    return op.ScatterElements(zeros, op.Concat(begins, ends, axis=0), pads)


@formula("Pad", since=11, types=LostTypes.OWN)
def pad_11_down(op: Op, x: Value, pads: Value, value: Value | None, *, mode: str) -> Value:
    """`pads` and `value` move from inputs to attributes, of floats alone.

    What changes: constant pads and a value that float32 holds become attributes. Other operators replace any other Pad, and
    every Pad of integers. In mode constant, that is a Concat with blocks of the value for each axis; in other modes, a Gather
    for each axis. Negative pads cut the axis first, as in ONNX Runtime.

    Why equal: the changelog of version 11 moves pads and value and adds types. Concat and Gather only move elements.

    Limits: a replacement by Concat or Gather needs the rank, and opset 8 if lengths are not fixed.
    """
    dtype = x.need_dtype()
    array = pads.constant
    filler = np.zeros(()) if value is None else value.constant
    # A value of float64 may overflow in float32, which shows that it does not fit.
    with np.errstate(over="ignore"):
        fits = mode != "constant" or (
            filler is not None and bool((filler.astype(np.float32) == filler).all() or np.isnan(filler).all())
        )
    if array is None:
        op.rw.use_at_run_time(1, "pads")
    if array is None or dtype not in FLOATS or not fits:
        return _joined(op, x, pads, value) if mode == "constant" else _gathered(op, x, pads, mode, None)
    if not array.size:  # of a scalar, as no attribute is an empty list
        return x
    number = filler.item() if mode == "constant" and filler is not None and filler.size else 0
    return op.itself(x, pads=[int(pad) for pad in array.reshape(-1)], value=float(number) if number else None)


# Padding written out, for pads that may be computed at run time: by indices, or by blocks that are joined


def _gathered(op: Op, x: Value, pads: Value, mode: str, axes: Sequence[int] | None) -> Value:
    """Return the result of a Pad in mode wrap, edge or reflect, by a Gather for each padded axis; `axes` of None are all."""
    for axis, begin, end in _pads(op, x, pads, axes):
        cut, cut_end = _positive(_ZERO - begin), _positive(_ZERO - end)
        kept_size = _less(_less(op.size_of(x, axis), cut), cut_end)
        before, after = _positive(begin), _positive(end)
        count = _plus(_plus(kept_size, before), after)
        if (
            count.array is not None
            and kept_size.array is not None
            and kept_size.array > 0
            and count.array <= _LARGEST
        ):
            index = op.constant(np.arange(count.array.item()))
        else:
            index = op.iota(count).as_written()
        x = op.Gather(x, _plus(_place(op, mode, _less(index, before), kept_size), cut), axis=axis)
    return x


def _place(op: Op, mode: str, index: Value, length: Value) -> Value:
    """Return the places in an axis of some length that indices, which may be before or after it, stand for."""
    if mode == "wrap":
        array, size = index.array, length.array
        return op.Mod(index, length) if array is None or size is None else op.constant(array % size)
    last = length - _ONE
    # reflect: -1 is 1, and last + 1 is last - 1. edge: negative indices become 0, and indices after the last become the last.
    inside = abs if mode == "reflect" else _positive
    return _less(last, inside(_less(last, inside(index))))


def _joined(op: Op, x: Value, pads: Value, value: Value | None) -> Value:
    """Return the result of a Pad in mode constant, by a Concat with blocks of the value for each padded axis."""
    filler = op.constant(0, x) if value is None else value
    rank = x.need_rank()
    for axis, begin, end in _pads(op, x, pads, None):
        cut, cut_end = _positive(_ZERO - begin), _positive(_ZERO - end)
        if not (_is_zero(cut) and _is_zero(cut_end)):
            x = op.write("Slice", x, cut, _less(op.size_of(x, axis), cut_end), [axis])
        before, after = (
            [] if _is_zero(length) else [_block(op, filler, x, rank, axis, length)]
            for length in (_positive(begin), _positive(end))
        )
        x = op.Concat(*before, x, *after, axis=axis) if before or after else x
    return x


def _block(op: Op, filler: Value, x: Value, rank: int, axis: int, length: Value) -> Value:
    sizes = [length if at == axis else op.size_of(x, at) for at in range(rank)]
    arrays = [size.array for size in sizes if size.array is not None]
    return op.Expand(filler, np.concatenate(arrays) if len(arrays) == rank else op.Concat(*sizes, axis=0))


def _pads(op: Op, x: Value, pads: Value, axes: Sequence[int] | None) -> list[tuple[int, Value, Value]]:
    """Return each axis that may be padded with its pads at the beginning and the end, vectors of one element."""
    entries = op.rw.partly_known(pads.name)
    if axes is None:
        axes = range(len(entries) // 2 if entries is not None else x.need_rank())
    pads_of_axes = []
    for number, axis in enumerate(axes):
        begin, end = (
            op.Gather(pads, [at], axis=0)
            if entries is None or entries[at] is None
            else op.constant([entries[at]])
            for at in (number, number + len(axes))
        )
        if not (_is_zero(begin) and _is_zero(end)):
            pads_of_axes.append((axis, begin, end))
    return pads_of_axes


def _is_zero(amount: Value) -> bool:
    return amount.array is not None and amount.array.tolist() == [0]


def _plus(a: Value, b: Value) -> Value:
    return a if _is_zero(b) else a + b


def _less(a: Value, b: Value) -> Value:
    return a if _is_zero(b) else a - b


def _positive(amount: Value) -> Value:
    """Return an amount, or 0 if it is negative: half of the sum with its absolute value, since old Max has no integers."""
    return (amount + abs(amount)) / _TWO
