"""Col2Im: below opset 18 the elements that meet in one place are gathered and added."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value, formula

_LARGEST, _LARGEST_BLOCK = 2**24, 2**12
"""The most elements of an image times those of a block, and of a block: the places of all are constants."""


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
    """Col2Im becomes Gathers of the elements of all blocks that lie in one place of the image, and their sum.

    What changes: each channel's elements are laid out in one axis, with a zero behind; as many Gathers as blocks overlap
    take the elements of each place in the order of the block's elements, or the zero.

    Why equal: Col2Im adds the blocks to an image of zeros, in the order of the block's elements (ONNX Runtime's
    col2im.cc). Bit for bit.

    Limits: image_shape and block_shape must be constants.
    """
    image = [int(item) for item in op.rw.need_constant(1, "image_shape").reshape(-1)]
    block = [int(item) for item in op.rw.need_constant(2, "block_shape").reshape(-1)]
    count, elements = len(image), math.prod(image) * math.prod(block)
    strides = strides or [1] * count
    if not 0 < elements <= _LARGEST or math.prod(block) > _LARGEST_BLOCK or min(*image, *block, *strides) < 1:
        op.refuse(f"an image {image} of blocks {block} cannot be written", code="no-equal")
    places, size = _places(image, block, dilations or [1] * count, pads or [0] * 2 * count, strides)
    channels = x.shape[1] if x.rank == 3 and x.shape else None
    rows = -1 if channels is None else channels // math.prod(block)
    value = op.Reshape(x, [0, rows, size])
    if any(bool((taken == size).any()) for taken in places):
        value = op.write("Pad", value, [0, 0, 0, 0, 0, 1], op.constant(0, x))
    total = None
    for taken in places:
        part = op.Gather(value, taken, axis=2)
        total = part if total is None else total + part
    assert total is not None
    if x.is_float and x.dtype != TensorProto.BFLOAT16:
        total = total + op.constant([0], x)  # -0 added to an image of zeros is +0
    op.note("the elements that meet in one place are gathered and added")
    return op.Reshape(total, [0, 0, *image])


def _places(
    image: list[int], block: list[int], dilations: list[int], pads: list[int], strides: list[int]
) -> tuple[list[npt.NDArray[np.int64]], int]:
    """Return, for each round, the number of an element for each place of the image, and how many elements there are.

    That count, as a number of an element, is that of the zero behind the elements.
    """
    counts = []
    for axis, length in enumerate(image):
        free = length + pads[axis] + pads[len(image) + axis] - dilations[axis] * (block[axis] - 1) - 1
        counts.append(free // strides[axis] + 1)
    blocks = int(np.prod(counts))
    size = int(np.prod(block)) * blocks
    found: list[list[int]] = [[] for _ in range(int(np.prod(image)))]
    for number, offset in enumerate(itertools.product(*(range(length) for length in block))):
        lines = [
            np.arange(counts[axis]) * strides[axis] - pads[axis] + offset[axis] * dilations[axis]
            for axis in range(len(image))
        ]
        grid = np.meshgrid(*lines, indexing="ij")
        inside = np.all([(at >= 0) & (at < length) for at, length in zip(grid, image, strict=True)], axis=0)
        flat = np.ravel_multi_index([np.where(inside, at, 0) for at in grid], image)
        for at, element in zip(flat[inside], np.flatnonzero(inside.reshape(-1)), strict=True):
            found[at].append(number * blocks + int(element))
    rounds = max((len(items) for items in found), default=0) or 1
    table = np.full((rounds, len(found)), size, np.int64)
    for place, items in enumerate(found):
        table[: len(items), place] = items
    return list(table), size
