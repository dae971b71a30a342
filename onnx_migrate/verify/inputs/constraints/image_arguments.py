"""Scales, sizes and regions of operators on images, and the image and blocks of Col2Im, where they are inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["IMAGE_OPERATORS", "columns_argument", "image_argument"]


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


IMAGE_OPERATORS = frozenset({"Resize", "MaxUnpool", "AffineGrid"})


def image_argument(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """Return the values of an input that is a scale, size or region; None for any other input."""
    rule = _RULES.get((node.op_type, index))
    return rule(node, index, facts) if rule is not None else None


def _scales(node: NodeProto, index: int, facts: Facts) -> Range:
    return (
        Range(1, 2, (1.0, 1.0, 2.0, 1.5))
        if facts.count(node.input[index]) != 3
        else Range(1, 2, (1.0, 2.0, 1.5))
    )


def _sizes(node: NodeProto, index: int, facts: Facts) -> Range:
    """Sizes of Resize: declared ones, or batch and channels as they are and the rest half as long again."""
    data, wanted = facts.static_shape(node.input[0]), facts.declared_output(node)
    if not data:
        return Range(1, 1, (1.0, 3.0, 24.0, 40.0))
    axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), list(range(len(data))))
    if wanted is not None and len(wanted) == len(data):
        return Range.exactly(*(wanted[axis] for axis in axes))
    return Range.exactly(*(data[a] if a % len(data) < 2 < len(data) else data[a] * 3 // 2 for a in axes))


def _region(node: NodeProto, index: int, facts: Facts) -> Range:
    """Starts of a region of interest, then its ends: all of the input."""
    axes = (facts.count(node.input[index]) or 2) // 2
    return Range.exactly(*[0] * axes, *[1] * axes)


def _unpooled(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """The shape that MaxUnpool restores: declared, or that of a pooling by 2."""
    data, wanted = facts.static_shape(node.input[0]), facts.declared_output(node)
    if wanted is not None or data is None:
        return Range.exactly(*wanted) if wanted else None
    return Range.exactly(*data[:2], *(2 * size for size in data[2:]))


def _image_grid(node: NodeProto, index: int, facts: Facts) -> Range:
    """The size N, C, (D,) H, W of AffineGrid, with the batch of theta."""
    batch = facts.length(node.input[0], 0) or 1
    sizes = (3, 4, 5) if facts.count(node.input[index]) == 4 else (3, 4, 5, 6)
    return Range.exactly(batch, *sizes)


_RULES: dict[tuple[str, int], Callable[[NodeProto, int, Facts], Range | None]] = {
    ("Resize", 1): _region,
    ("Resize", 2): _scales,
    ("Resize", 3): _sizes,
    ("MaxUnpool", 2): _unpooled,
    ("AffineGrid", 1): _image_grid,
}
