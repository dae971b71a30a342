"""The arguments of Col2Im: an image and blocks whose counts and sizes are those of the columns."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["columns_argument"]


def columns_argument(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """Return the image shape (input 1) or block shape (input 2) of Col2Im that fits its columns, None if none is found.

    Of columns [N, C · product of the block, number of blocks] each axis of the image has as many blocks as steps fit.
    """
    columns, arguments = facts.static_shape(node.input[0]), facts.static_shape(node.input[index])
    if columns is None or arguments is None or len(columns) != 3 or not arguments:
        return None
    axes = arguments[0]
    declared = facts.static_shape(node.output[0])
    for block in _factors(columns[1], axes, exact=False):
        for counts in _factors(columns[2], axes, exact=True):
            image = _image(node, block, counts)
            shape = (columns[0], columns[1] // prod(block), *image)
            if declared is None or declared == shape:
                return Range.exactly(*(image if index == 1 else block))
    return None


def _factors(product: int, count: int, *, exact: bool) -> Iterator[tuple[int, ...]]:
    """Yield `count` numbers of a given product, or (not exact) of one that divides it."""
    if count == 0:
        if product == 1 or not exact:
            yield ()
        return
    for first in range(1, product + 1):
        if product % first == 0:
            for rest in _factors(product // first, count - 1, exact=exact):
                yield (first, *rest)


def _image(node: NodeProto, block: tuple[int, ...], counts: tuple[int, ...]) -> tuple[int, ...]:
    given = {a.name: list(a.ints) for a in node.attribute}
    axes = len(block)
    strides, dilations = given.get("strides") or [1] * axes, given.get("dilations") or [1] * axes
    pads = given.get("pads") or [0] * 2 * axes
    return tuple(
        (counts[i] - 1) * strides[i] + dilations[i] * (block[i] - 1) + 1 - pads[i] - pads[i + axes]
        for i in range(axes)
    )
