"""ConvTranspose, CausalConvWithState, DeformConv (a Conv of samples), and Col2Im (a sum of blocks)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Result, TensorProto, Value, formula
from onnx_migrate.messages import count_of
from onnx_migrate.plugins import Rewriter, adapter, compatible
from onnx_migrate.rewrite.bounded_arrays import bounded

from .image_sampling import SampledAxis, Sampler, channel_rows

compatible("Conv", 11, reason="auto_pad and the defaults of strides and dilations are specified")

_END = int(np.iinfo(np.int64).max)


_MOST_PLACES = 1 << 20
"""The most positions of an image, plus elements of its blocks, that Col2Im orders one by one. This many take a second."""


@adapter("ConvTranspose", to=11)
def conv_transpose_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Batch and channels are removed from `output_shape`, which from opset 11 on has spatial axes only.

    Why equal: version 1 does not say which axes it has, and ONNX Runtime accepts both forms (conv_transpose_attributes.h).
    The text about which end gets an odd pad changed too. It changed for all versions alike (onnx pull request 3440), and the
    runtimes changed with it.
    """
    attribute = rw.attribute("output_shape")
    if attribute is None or attribute.ref_attr_name or len(attribute.ints) < 3:
        return
    spatial = _spatial_axes(rw)
    if spatial is None:
        rw.refuse(
            f"output_shape has {count_of(len(attribute.ints), 'element')}, but the number of spatial axes is unknown",
            code="needs-rank",
            hint="declare the shape of the node's input or weights",
        )
    if len(attribute.ints) == spatial + 2:
        rw.set("output_shape", list(attribute.ints[2:]))


def _spatial_axes(rw: Rewriter) -> int | None:
    for value in (rw.input(1), rw.input(0)):
        rank = rw.rank(value)
        if rank is not None:
            return rank - 2
    for name in ("kernel_shape", "strides", "dilations", "output_padding"):
        attribute = rw.attribute(name)
        if attribute is not None and not attribute.ref_attr_name:
            return len(attribute.ints)
    return None


@formula("CausalConvWithState", since=27, exactness=EQUIVALENT, types=LostTypes.OWN)
def causal_conv_with_state(
    op: Op, x: Value, weight: Value, bias: Value | None, past: Value | None, *, activation: str
) -> Result:
    """The cached positions are put in front of the new ones, and a Conv with a group for each channel follows.

    Why equal: this is the function body of the standard. The results differ from onnx.reference by at most 1e-6, as measured.

    Limits: the element type and the number of channels must be known.
    """
    dtype = x.need_dtype()
    channels = _channels(x, weight)
    if past is None:  # there is no cache: zeros stand for the positions before the first
        behind = op.Sub(op.size_of(weight, 2).as_written(), [1])
        zero = numpy_helper.from_array(np.zeros(1, helper.tensor_dtype_to_np_dtype(dtype)))
        past = op.ConstantOfShape(op.Concat(op.size_of(x, 0), [channels], behind, axis=0), value=zero)
    padded = op.Concat(past, x, axis=2)
    state = op.write("Slice", padded, op.size_of(x, 2), [_END], [2]) if op.rw.output(1) else None
    result = op.Conv(padded, weight, bias, group=channels)
    if activation != "none":
        result = result.cast(TensorProto.FLOAT)
        result = (result * op.Sigmoid(result)).cast(dtype)
    return result, state


def _channels(x: Value, weight: Value) -> int:
    for value, axis in ((x, 1), (weight, 0)):
        shape = value.shape
        if shape is not None and (size := shape[axis]) is not None:
            return size
    return weight.need_static()[0]


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
    """DeformConv begins with opset 19, so Gathers sample the image, and a Conv with a kernel of 1 by 1 follows.

    What changes: the positions of the kernel plus their offsets are the coordinates of the samples. All channels are sampled
    there, linearly and with zeros outside. The samples are multiplied by the mask, and become the channels of a Conv. Its
    weights are those of the kernel.

    Why equal: this is the operator's definition (onnx/defs/nn/defs.cc). The largest difference measured is 1e-6, for elements
    up to 4.

    Limits: the node must have two spatial axes, and weights of a known shape.
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
        positions = op.iota(op.known(sizes[axis])).cast(TensorProto.FLOAT)
        steps = positions * np.array([(strides or [1, 1])[axis]], np.float32)
        steps = steps if axis else steps.reshape(-1, 1)
        regular = (steps + within.reshape(-1, 1, 1).astype(np.float32)).cast(real)
        at = op.Unsqueeze(of_axis + regular, [4])
        last = lengths[axis].cast(real) - sampler.number(1)
        sampler.axes.append(SampledAxis(at, last, None if axis else lengths[1]))
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


_LARGEST, _LARGEST_BLOCK = 2**24, 2**12
"""The most elements of an image times those of a block, and the most of a block. All their positions become constants."""


@formula("Col2Im", since=18)
def col2im(
    op: Op,
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: list[int] | None,
    pads: list[int] | None,
    strides: list[int] | None,
) -> Value:
    """Col2Im begins with opset 18, so Gathers collect the block elements for each position of the image, and Add sums them.

    What changes: each channel's elements are laid out in one axis, followed by a zero. There are as many Gathers as blocks
    overlap. For each position, they read one element each, in the order of the block's elements, or the zero.

    Why equal: Col2Im adds the blocks to an image of zeros, in the order of the block's elements (ONNX Runtime's col2im.cc).
    The results are equal bit for bit.

    Limits: image_shape and block_shape must be constants.
    """
    image = [int(length) for length in op.rw.need_constant(1, "image_shape").reshape(-1)]
    block = [int(length) for length in op.rw.need_constant(2, "block_shape").reshape(-1)]
    count, elements = len(image), math.prod(image) * math.prod(block)
    strides = strides or [1] * count
    if not 0 < elements <= _LARGEST or math.prod(block) > _LARGEST_BLOCK or min(*image, *block, *strides) < 1:
        op.refuse(f"an image {image} of blocks {block} cannot be written", code="no-equal")
    index_rows, size = _places(image, block, dilations or [1] * count, pads or [0] * 2 * count, strides)
    channels = x.shape[1] if x.rank == 3 and x.shape else None
    rows = -1 if channels is None else channels // math.prod(block)
    value = op.Reshape(x, [0, rows, size])
    if any(bool((index_row == size).any()) for index_row in index_rows):
        value = op.write("Pad", value, [0, 0, 0, 0, 0, 1], op.constant(0, x))
    total = None
    for index_row in index_rows:
        part = op.Gather(value, index_row, axis=2)
        total = part if total is None else total + part
    assert total is not None
    if x.is_float and x.dtype != TensorProto.BFLOAT16:
        total = total + op.constant([0], x)  # -0 added to an image of zeros is +0
    op.note("the elements that meet in one place are gathered and added")
    return op.Reshape(total, [0, 0, *image])


def _places(
    image: list[int], block: list[int], dilations: list[int], pads: list[int], strides: list[int]
) -> tuple[list[npt.NDArray[np.int64]], int]:
    """Return a list with one array per round, and the number of elements.

    Each array gives, for each position of the image, the number of the element to add there. A number equal to the number of
    elements means the zero behind them.
    """
    counts = []
    for axis, length in enumerate(image):
        free = length + pads[axis] + pads[len(image) + axis] - dilations[axis] * (block[axis] - 1) - 1
        counts.append(free // strides[axis] + 1)
    blocks = int(np.prod(counts))
    size = int(np.prod(block)) * blocks
    bounded(int(np.prod(image)) + size, _MOST_PLACES)
    entries: list[list[int]] = [[] for _ in range(int(np.prod(image)))]
    for number, offset in enumerate(itertools.product(*(range(length) for length in block))):
        lines = [
            np.arange(counts[axis]) * strides[axis] - pads[axis] + offset[axis] * dilations[axis]
            for axis in range(len(image))
        ]
        grid = np.meshgrid(*lines, indexing="ij")
        inside = np.all([(at >= 0) & (at < length) for at, length in zip(grid, image, strict=True)], axis=0)
        flat = np.ravel_multi_index([np.where(inside, at, 0) for at in grid], image)
        for at, element in zip(flat[inside], np.flatnonzero(inside.reshape(-1)), strict=True):
            entries[at].append(number * blocks + int(element))
    rounds = max((len(row) for row in entries), default=0) or 1
    table = np.full((rounds, len(entries)), size, np.int64)
    for column, row in enumerate(entries):
        table[: len(row), column] = row
    return list(table), size
