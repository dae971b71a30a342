"""Operators that move elements: DepthToSpace, SpaceToDepth, CenterCropPad and ReverseSequence."""

from __future__ import annotations

import numpy as np

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value, formula
from onnx_migrate.errors import InvalidModel

from .gather import Dims, along

_MOST_CHANNELS = 2**20
"""The most channels whose order is written as a constant."""


@formula("DepthToSpace", since=11)
def depth_to_space(op: Op, x: Value, *, blocksize: int, mode: str) -> Value:
    """`mode` is dropped: without it the channels are ordered as with DCR.

    What changes: for CRD, the channels are first put into the order of DCR. One Gather does this if their number is known,
    and otherwise a Reshape and a Transpose.

    Why equal: CRD reads channel c * b * b + i where DCR reads i * C + c (onnx/defs/tensor/defs.cc). Values are moved.

    Limits: if the number of channels is unknown, Reshape fails for an empty batch when the model runs.
    """
    if mode != "CRD":
        return op.itself(x, mode=None)
    channels, square = _channels(x), blocksize**2
    if channels is not None and channels % square:
        raise InvalidModel(
            f"has {channels} channels, which are not a multiple of {square}", code="invalid-node"
        )
    op.note("the channels are put into the order of mode DCR")
    return op.itself(_exchanged(op, x, channels, [-1, square]), mode=None)


@formula("SpaceToDepth", since=28)
def space_to_depth(op: Op, x: Value, *, blocksize: int, mode: str) -> Value:
    """`mode` is dropped: without it the channels are ordered as with DCR.

    What changes: for CRD, the channels of the result are put into its order. One Gather does this if their number is known,
    and otherwise a Reshape and a Transpose.

    Why equal: CRD writes channel c * b * b + i where DCR writes i * C + c (onnx/defs/tensor/defs.cc). Values are moved.

    Limits: if the number of channels is unknown, Reshape fails for an empty batch when the model runs.
    """
    raw = op.itself(x, mode=None)
    if mode != "CRD":
        return raw
    op.note("the channels are put into the order of mode CRD")
    channels, square = _channels(x), blocksize**2
    return _exchanged(op, raw, None if channels is None else channels * square, [square, -1])


def _channels(x: Value) -> int | None:
    shape = x.shape
    return shape[1] if shape is not None and len(shape) == 4 else None


def _exchanged(op: Op, value: Value, channels: int | None, split: list[int]) -> Value:
    """Swap the two factors of the channels. `split` holds their sizes."""
    if channels is not None and channels <= _MOST_CHANNELS:
        return op.Gather(value, np.arange(channels).reshape(split).T.reshape(-1), axis=1)
    whole = op.Shape(value)
    apart = op.Reshape(value, op.Concat([0, *split], op.Slice(whole, [2], [4], [0]), axis=0))
    return op.Reshape(op.Transpose(apart, perm=[0, 2, 1, 3, 4]), whole)


@formula("DepthToSpace", "SpaceToDepth", since=1)
def depth_and_space(op: Op, x: Value, *, blocksize: int) -> Value:
    """DepthToSpace and SpaceToDepth become Reshape, Transpose and Reshape.

    Why equal: the text defines the operators by these nodes. The results are equal bit for bit.

    Limits: channels, height and width must be fixed.
    """
    shape, block = x.shape, blocksize
    if shape is None or len(shape) != 4 or any(size is None for size in shape[1:]):
        op.refuse(f"channels, height and width of {x.name!r} must be fixed", code="needs-shape")
    channels, height, width = (size or 0 for size in shape[1:])
    dcr = op.rw.get("mode", "DCR") == "DCR"
    if op.operator == "SpaceToDepth":
        inner = [0, channels, height // block, block, width // block, block]
        order = [0, 3, 5, 1, 2, 4] if dcr else [0, 1, 3, 5, 2, 4]
        outer = [0, channels * block**2, height // block, width // block]
    else:
        depth = channels // block**2
        inner = [0, block, block, depth, height, width] if dcr else [0, depth, block, block, height, width]
        order = [0, 3, 4, 1, 5, 2] if dcr else [0, 1, 4, 2, 5, 3]
        outer = [0, depth, height * block, width * block]
    return op.Transpose(x.reshape(*inner), perm=order).reshape(*outer)


@formula("CenterCropPad", since=18)
def center_crop_pad(op: Op, x: Value, target: Value, *, axes: list[int] | None) -> Value:
    """CenterCropPad begins with opset 18, so a Pad extends the axes that are too short, and a Slice cuts the long ones.

    What changes: for a short axis, half of the missing length is added in front and the rest behind. For a long axis, half of
    the excess is cut off in front. Lengths that are not fixed are computed at run time.

    Why equal: this is the function body of the standard (onnx/defs/tensor/defs.cc). Values are moved.

    Limits: the rank must be known if `axes` are given or counted from the end.
    """
    shape = x.shape
    if axes is not None:
        rank = x.need_rank()
        if not all(-rank <= axis < rank for axis in axes):
            op.refuse(f"has axes {axes}, and its input {rank} of them", code="invalid-node")
        axes = [axis % rank for axis in axes]
    wanted = target.constant
    lengths = None if shape is None else [shape[axis] for axis in axes or range(len(shape))]
    if wanted is not None and lengths is not None and wanted.shape != (len(lengths),):
        op.refuse(
            f"has a shape of {list(wanted.shape)} for {len(lengths)} axes, and needs one number for each",
            code="invalid-node",
        )
    if wanted is None or shape is None or lengths is None or None in lengths:
        return _at_run_time(op, x, target.cast(TensorProto.INT64), axes)
    pairs = [(axis, length or 0) for axis, length in zip(axes or range(len(shape)), lengths, strict=True)]
    return _fixed(op, x, len(shape), pairs, [int(size) for size in wanted])


def _fixed(op: Op, x: Value, rank: int, lengths: list[tuple[int, int]], target: list[int]) -> Value:
    pads = [0] * 2 * rank
    cuts: list[tuple[int, int, int]] = []
    for (axis, length), wanted in zip(lengths, target, strict=True):
        if wanted > length:
            pads[axis] = (wanted - length) // 2
            pads[rank + axis] = wanted - length - pads[axis]
        elif wanted < length:
            start = (length - wanted) // 2
            cuts.append((axis, start, start + wanted))
    if any(pads):
        x = op.Pad(x, pads, 0)
    if cuts:
        axes, starts, ends = ([cut[part] for cut in cuts] for part in range(3))
        x = op.Slice(x, starts, ends, axes)
    return x


def _at_run_time(op: Op, x: Value, target: Value, axes: list[int] | None) -> Value:
    lengths = op.Shape(x)
    if axes is not None:
        lengths = op.Gather(lengths, list(axes), axis=0)
    longer = op.Max(lengths, target)
    missing = longer - lengths
    front = op.Div(missing, [2])
    parts = [front, missing - front]
    if axes is not None:
        order = [1 + axes.index(axis) if axis in axes else 0 for axis in range(x.need_rank())]
        parts = [op.Gather(op.Concat([0], part, axis=0), order, axis=0) for part in parts]
    padded = op.Pad(x, op.Concat(*parts, axis=0), 0)
    start = op.Div(longer - target, [2])
    return op.write("Slice", padded, start, start + target, axes)


@formula("ReverseSequence", since=10)
def reverse_sequence(op: Op, x: Value, sequence_lens: Value, *, batch_axis: int, time_axis: int) -> Value:
    """ReverseSequence begins with opset 10, so a Gather reads the steps of all sequences in their new order.

    What changes: in a sequence of length n, step t comes from step n - 1 - t if t is below n. Later steps keep their
    position. The axes of time and batch are flattened, and a Gather reads the rows by number.

    Why equal: this is the standard's definition. Values are moved, never computed with.

    Limits: the rank of the input must be known.
    """
    sizes = Dims(op, x)
    steps, row = (along(sizes.places(axis), axis, 2) for axis in (time_axis, batch_axis))
    lengths = along(sequence_lens, batch_axis, 2)
    turned = op.Sub(lengths, [1]) - steps
    source = op.select(steps < lengths, turned, steps)
    number = (
        source * sizes.some([batch_axis]) + row if time_axis == 0 else source + row * sizes.some([time_axis])
    )
    rest = range(2, sizes.rank)
    rows = op.Concat([-1], sizes.some(rest), axis=0) if rest else op.constant([-1])
    return op.Gather(op.Reshape(x, rows), number, axis=0)
