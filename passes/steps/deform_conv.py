"""DeformConv: below opset 19 its elements are sampled by Gathers, for a Conv of one place."""

from __future__ import annotations

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, TensorProto, Value, formula

from .image_sampling import Axis, Sampler, channel_rows


@formula("DeformConv", since=19, exactness=EQUIVALENT)
def deform_conv(
    op: Op,
    x: Value,
    weights: Value,
    offset: Value,
    bias: Value | None,
    mask: Value | None,
    *,
    group: int,
    offset_group: int,
    strides: list[int] | None,
    dilations: list[int] | None,
    pads: list[int] | None,
) -> Value:
    """DeformConv becomes Gathers of the elements around each place that it convolves, and a Conv with a kernel of 1 by 1.

    What changes: the places of the kernel plus their offsets are the coordinates at which all channels are sampled, linearly
    and with zeros outside; the samples, by the mask, are the channels of a Conv whose weights are the kernel's.

    Why equal: this is the operator's definition (onnx/defs/nn/defs.cc). 1e-6 of elements up to 4 measured.

    Limits: two spatial axes, and weights of a known shape.
    """
    shape = weights.need_static()
    if len(shape) != 4:
        op.refuse(
            f"DeformConv does not exist below opset 19, and it is written otherwise with 2 spatial axes, not {len(shape) - 2}",
            code="no-equal",
        )
    channels, kernel = shape[1] * group, list(shape[2:])
    count = kernel[0] * kernel[1]
    dtype = x.need_dtype()
    real = TensorProto.DOUBLE if dtype == TensorProto.DOUBLE else TensorProto.FLOAT
    lengths, sizes = ([op.size_of(value, axis) for axis in (2, 3)] for value in (x, offset))

    image = x.cast(real)
    if offset_group > 1:
        image = op.Reshape(image, op.write("Concat", [-1, channels // offset_group], *lengths, axis=0))
    rows = channel_rows(op, image, 4, [channels // offset_group])
    sampler = Sampler(op, real, rows, rank=5)
    split = op.write("Concat", [-1, count, 2], *sizes, axis=0)
    moved = op.Reshape(offset.cast(real), split)
    for axis in (0, 1):
        of_axis = op.Gather(moved, axis, axis=2)
        within = np.indices(kernel)[axis].reshape(-1) * (dilations or [1, 1])[axis] - (pads or [0, 0])[axis]
        places = op.iota(op.known(sizes[axis])).cast(TensorProto.FLOAT)
        steps = places * np.array([(strides or [1, 1])[axis]], np.float32)
        steps = steps if axis else steps.reshape(-1, 1)
        regular = (steps + within.reshape(-1, 1, 1).astype(np.float32)).cast(real)
        at = op.Unsqueeze(of_axis + regular, [4])
        last = lengths[axis].cast(real) - sampler.number(1)
        sampler.axes.append(Axis(at, last, None if axis else lengths[1]))
    if offset_group > 1 or (x.shape or (None,))[0] != 1:
        images = op.size_of(image if offset_group > 1 else x, 0)
        sampler.set_images(images, lengths[0] * lengths[1])
    samples = sampler.linear()
    if mask is not None:
        parts = op.write("Concat", [-1, count], *sizes, [1], axis=0)
        samples = samples * op.Reshape(mask.cast(real), parts)
    samples = op.Transpose(samples, perm=[0, 4, 1, 2, 3])
    samples = op.Reshape(samples, op.write("Concat", [-1, channels * count], *sizes, axis=0))
    flat = weights.cast(real).reshape(0, shape[1] * count, 1, 1)
    addend = None if bias is None else bias.cast(real)
    op.note("its places are sampled by Gathers, and convolved by a kernel of 1 by 1")
    return op.Conv(samples, flat, addend, group=group, kernel_shape=[1, 1]).cast(dtype)
