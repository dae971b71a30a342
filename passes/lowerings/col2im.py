"""Col2Im: below opset 18 the elements that meet in one place are gathered and added."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, integers

_LARGEST, _LARGEST_BLOCK = 2**24, 2**12
"""The most elements of an image times those of a block, and of a block: the places of all are constants."""


@lowering("Col2Im", leaves=18)
def col2im_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Col2Im becomes Gathers of the elements of all blocks that lie in one place of the image, and their sum.

    What changes: each channel's elements are laid out in one axis, with a zero behind; as many Gathers as blocks overlap
    take the elements of each place in the order of the block's elements, or the zero.

    Why equal: Col2Im adds the blocks to an image of zeros, in the order of the block's elements (ONNX Runtime's
    col2im.cc). Bit for bit.

    Limits: image_shape and block_shape must be constants.
    """
    image = [int(item) for item in rw.need_constant(1, "image_shape").reshape(-1)]
    block = [int(item) for item in rw.need_constant(2, "block_shape").reshape(-1)]
    count = len(image)
    elements = math.prod(image) * math.prod(block)
    if (
        not 0 < elements <= _LARGEST
        or math.prod(block) > _LARGEST_BLOCK
        or min(*image, *block, *rw.get("strides", [1])) < 1
    ):
        raise CannotMigrate(f"an image {image} of blocks {block} cannot be written", code="no-equal")
    places = _places(
        image,
        block,
        list(rw.get("dilations", [1] * count)),
        list(rw.get("pads", [0] * 2 * count)),
        list(rw.get("strides", [1] * count)),
    )
    size = places.pop()[0]
    shape = rw.shape(rw.input(0))
    channels = shape[1] if shape is not None and len(shape) == 3 else None
    rows = -1 if channels is None else channels // int(np.prod(block))
    value = rw.before("Reshape", [rw.input(0), integers(rw, 0, rows, int(size))], hint="laid_out")
    if any(bool((taken == size).any()) for taken in places):
        zero = rw.constant(np.zeros((), rw.numpy_type(rw.input(0))), "zero")
        value = rw.before("Pad", [value, integers(rw, 0, 0, 0, 0, 0, 1), zero], hint="with_zero")
    total = ""
    for taken in places:
        part = rw.before("Gather", [value, rw.constant(taken, "places")], hint="taken", axis=2)
        total = rw.before("Add", [total, part], hint="sum") if total else part
    dtype = rw.need_dtype(rw.input(0))
    if dtype in FLOATS and dtype != TensorProto.BFLOAT16:
        none = rw.constant(np.zeros(1, rw.numpy_type(rw.input(0))), "none")
        total = rw.before("Add", [total, none], hint="sum")  # -0 added to an image of zeros is +0
    rw.after("Reshape", [total, integers(rw, 0, 0, *image)], [rw.output(0)])
    rw.remove()
    rw.note("the elements that meet in one place are gathered and added")


def _places(
    image: list[int], block: list[int], dilations: list[int], pads: list[int], strides: list[int]
) -> list[npt.NDArray[np.int64]]:
    """Return, for each round, the number of an element for each place of the image; the last array holds their count.

    The count itself, as a number, is that of the zero behind the elements.
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
        flat = np.ravel_multi_index(
            [np.where(inside, at, 0) for at in grid],
            image,
        )
        for at, element in zip(
            flat[inside].tolist(), np.flatnonzero(inside.reshape(-1)).tolist(), strict=True
        ):
            found[at].append(number * blocks + element)
    rounds = max((len(items) for items in found), default=0) or 1
    table = np.full((rounds, len(found)), size, np.int64)
    for place, items in enumerate(found):
        table[: len(items), place] = items
    return [*(np.ascontiguousarray(row) for row in table), np.array([size], np.int64)]
