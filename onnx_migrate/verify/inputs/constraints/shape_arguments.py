"""Axes, shapes, sizes, scales and paddings that a model takes at run time: vectors whose elements must fit other inputs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.inputs.constraints.index_ranges import Rule, fixed
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["shape_argument"]


def shape_argument(argument: Argument) -> Range | None:
    """Return the values of an input that is a shape, a size, axes or the like; None for any other input."""
    operator, index = argument.node.op_type, argument.index
    if index == 1 and operator.startswith("Reduce"):
        return _first_axes(argument)
    rule = _RULES.get((operator, index))
    return rule(argument) if rule is not None else None


def _first_axes(argument: Argument) -> Range:
    """Axes must differ, and exist: the first ones."""
    return Range.exactly(*range(argument.rank() or 1))


def _new_axes(argument: Argument) -> Range:
    return Range.exactly(*range(argument.count or 1))


def _axes_of_length_one(argument: Argument) -> Range:
    axes = [axis for axis in range(argument.rank()) if argument.length(0, axis) == 1]
    return Range.exactly(*(axes or [0]))


def _signal_axis(argument: Argument) -> Range:
    """DFT transforms any axis but the last, which holds the parts of complex numbers."""
    return Range(1, 1) if argument.rank() > 2 else Range(0, 0)


def _reshape(argument: Argument) -> Range:
    """The shape declared for the output; else the data's own, with its last axes merged or followed by ones to fit.

    Zeros, which stand for the data's own lengths, let the same shape serve each item of a batch.
    """
    data, count, wanted = argument.shape(), argument.count, argument.declared
    if data is None or count is None:
        return Range.exactly(0.0)
    # With allowzero, a 0 is a length.
    keeps_zeros = bool(argument.attribute("allowzero", 0))
    fits = wanted is not None and len(wanted) == count and prod(wanted) == prod(data)
    if wanted is not None and fits and (all(wanted) or keeps_zeros):
        return Range.exactly(*wanted)
    # Axes of length 1 fill up the shape.
    if count >= len(data):
        return Range.exactly(*(data if keeps_zeros else [0] * len(data)), *[1] * (count - len(data)))
    own, merged = data[: max(0, count - 1)], prod(data[count - 1 :])
    return Range.exactly(*(own if keeps_zeros else [0] * len(own)), *([merged] if count else []))


def _constant_shape(argument: Argument) -> Range:
    wanted = argument.declared
    return Range.exactly(*wanted) if wanted and prod(wanted) <= 1 << 16 else Range(1, 3)


def _repeats(argument: Argument) -> Range:
    data, wanted = argument.shape(), argument.declared
    if not data or not wanted or len(data) != len(wanted) or not all(data):
        return Range(1, 2)
    pairs = list(zip(wanted, data, strict=True))
    return Range(1, 2) if any(a % b for a, b in pairs) else Range.exactly(*(a // b for a, b in pairs))


def _broadcast(argument: Argument) -> Range:
    data, wanted = argument.shape(), argument.declared
    if data is not None and wanted and len(wanted) == argument.count:
        tail = wanted[len(wanted) - len(data) :]
        if len(data) <= len(wanted) and all(small in (1, big) for small, big in zip(data, tail, strict=True)):
            return Range.exactly(*wanted)
    return Range(1, 1)


def _paddings(argument: Argument) -> Range:
    """Reflection takes fewer elements than an axis has."""
    lengths = (argument.length(0, axis) for axis in range(argument.rank()))
    shape = [size for size in lengths if size is not None]
    constant = argument.attribute("mode", b"constant") == b"constant"
    return Range(0, 2 if constant or not shape else min(2, max(0, min(shape) - 1)))


def _split_sizes(argument: Argument) -> Range | None:
    """Return sizes that sum to the length of the axis: those of the declared outputs, otherwise about equal ones."""
    node, facts, axis = argument.node, argument.facts, argument.attribute("axis", 0)
    length, shape = argument.length(0, axis), facts.shape(node.input[argument.index])
    if node.op_type == "SplitToSequence" and not shape:
        return Range(1, 1) if length is None or length < 2 else Range(2, 2)
    count = shape[0] if shape else len(node.output)
    if length is None or not count:
        return Range(1, 1)
    # The declared outputs may need parts of certain sizes.
    sizes = [size for name in node.output if (size := facts.length(name, axis)) is not None]
    if len(sizes) == len(node.output) == count and sum(sizes) == length:
        return Range.exactly(*sizes)
    return Range.exactly(*[length // count] * (count - 1), length - length // count * (count - 1))


def _transform_length(argument: Argument) -> Range:
    length = argument.length(0, 1) or 8
    return Range(length, length)


def _frame_length(argument: Argument) -> Range:
    length = argument.length(2, 0) or min(16, argument.length(0, 1) or 16)
    return Range(length, length)


def _columns(argument: Argument) -> Range | None:
    """The image shape (input 1) or block shape (input 2) of Col2Im that fits its columns, None if none is found.

    Of columns [N, C · product of the block, number of blocks] each axis of the image has as many blocks as steps fit.
    """
    columns, arguments = argument.shape(), argument.shape(argument.index)
    if columns is None or arguments is None or len(columns) != 3 or not arguments:
        return None
    axes = arguments[0]
    # Of several shapes that fit, the declared one counts.
    declared = argument.facts.static_shape(argument.node.output[0])
    for block in _factors(columns[1], axes, exact=False):
        for counts in _factors(columns[2], axes, exact=True):
            image = _image(argument.node, block, counts)
            shape = (columns[0], columns[1] // prod(block), *image)
            if declared is None or declared == shape:
                return Range.exactly(*(image if argument.index == 1 else block))
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
    settings = {a.name: list(a.ints) for a in node.attribute}
    axes = len(block)
    strides, dilations = settings.get("strides") or [1] * axes, settings.get("dilations") or [1] * axes
    pads = settings.get("pads") or [0] * 2 * axes
    return tuple(
        (counts[i] - 1) * strides[i] + dilations[i] * (block[i] - 1) + 1 - pads[i] - pads[i + axes]
        for i in range(axes)
    )


def _scales(argument: Argument) -> Range:
    return Range(1, 2, (1.0, 2.0, 1.5) if argument.count == 3 else (1.0, 1.0, 2.0, 1.5))


def _sizes(argument: Argument) -> Range:
    """Return sizes of Resize: declared ones, or batch and channels unchanged and the rest half as long again."""
    data, wanted = argument.shape(), argument.declared
    if not data:
        return Range(1, 1, (1.0, 3.0, 24.0, 40.0))
    axes = argument.attribute("axes", range(len(data)))
    if wanted is not None and len(wanted) == len(data):
        return Range.exactly(*(wanted[axis] for axis in axes))
    return Range.exactly(*(data[a] if a % len(data) < 2 < len(data) else data[a] * 3 // 2 for a in axes))


def _region(argument: Argument) -> Range:
    """Starts of a region of interest, then its ends: all of the input."""
    axes = (argument.count or 2) // 2
    return Range.exactly(*[0] * axes, *[1] * axes)


def _unpooled(argument: Argument) -> Range | None:
    """The shape that MaxUnpool restores: declared, or that of a pooling by 2."""
    data, wanted = argument.shape(), argument.declared
    if wanted is not None or data is None:
        return Range.exactly(*wanted) if wanted else None
    return Range.exactly(*data[:2], *(2 * size for size in data[2:]))


def _image_grid(argument: Argument) -> Range:
    """The size N, C, (D,) H, W of AffineGrid, with the batch of theta."""
    sizes = (3, 4, 5) if argument.count == 4 else (3, 4, 5, 6)
    return Range.exactly(argument.length(0, 0) or 1, *sizes)


_RULES: dict[tuple[str, int], Rule] = {
    ("OneHot", 1): fixed(8.5, 8.5),  # between two numbers, so that rounding does not move it
    ("ConstantOfShape", 0): _constant_shape,
    ("Tile", 1): _repeats,
    ("Expand", 1): _broadcast,
    ("Reshape", 1): _reshape,
    ("Slice", 1): fixed(0, 0),
    ("Slice", 2): fixed(1, 3),
    ("Slice", 3): _first_axes,
    ("Slice", 4): fixed(1, 1),
    ("Split", 1): _split_sizes,
    ("SplitToSequence", 1): _split_sizes,
    ("Unsqueeze", 1): _new_axes,
    ("Squeeze", 1): _axes_of_length_one,
    ("CumSum", 1): fixed(0, 0),
    ("CumProd", 1): fixed(0, 0),
    ("Pad", 1): _paddings,
    ("Pad", 3): _first_axes,
    ("CenterCropPad", 1): fixed(1, 6),
    ("DFT", 1): _transform_length,
    ("DFT", 2): _signal_axis,
    ("STFT", 1): fixed(2, 2),
    ("STFT", 3): _frame_length,
    ("Col2Im", 1): _columns,
    ("Col2Im", 2): _columns,
    ("Resize", 1): _region,
    ("Resize", 2): _scales,
    ("Resize", 3): _sizes,
    ("MaxUnpool", 2): _unpooled,
    ("AffineGrid", 1): _image_grid,
}
