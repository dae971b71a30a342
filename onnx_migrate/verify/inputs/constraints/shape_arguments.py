"""Axes, shapes, sizes and paddings that a model takes at run time: vectors whose elements must fit other inputs."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.image_arguments import (
    IMAGE_OPERATORS,
    columns_argument,
    image_argument,
)
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["shape_argument"]


def shape_argument(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """Return the values of an input that is a shape, a size, axes or the like; None for any other input."""
    if index >= 1 and node.op_type == "Col2Im":
        return columns_argument(node, index, facts)
    if node.op_type in IMAGE_OPERATORS:
        return image_argument(node, index, facts)
    if index == 1 and node.op_type.startswith("Reduce"):
        return _first_axes(node, index, facts)
    rule = _RULES.get((node.op_type, index))
    return rule(node, index, facts) if rule is not None else None


def _first_axes(node: NodeProto, index: int, facts: Facts) -> Range:
    """Axes must differ, and exist: the first ones."""
    rank = len(facts.shape(node.input[0]) or ()) or 1
    return Range.exactly(*range(rank))


def _new_axes(node: NodeProto, index: int, facts: Facts) -> Range:
    return Range.exactly(*range(facts.count(node.input[index]) or 1))


def _axes_of_length_one(node: NodeProto, index: int, facts: Facts) -> Range:
    shape = facts.shape(node.input[0]) or ()
    return Range.exactly(*([axis for axis, size in enumerate(shape) if size == 1] or [0]))


def _one_axis(node: NodeProto, index: int, facts: Facts) -> Range:
    return Range(0, 0)


def _signal_axis(node: NodeProto, index: int, facts: Facts) -> Range:
    """DFT transforms any axis but the last, which holds the parts of complex numbers."""
    return Range(1, 1) if len(facts.shape(node.input[0]) or ()) > 2 else Range(0, 0)


def _reshape(node: NodeProto, index: int, facts: Facts) -> Range:
    """The shape declared for the output; else the data's own, with its last axes merged or followed by ones to fit.

    Zeros, which stand for the data's own lengths, let the same shape serve each item of a batch.
    """
    data, count = facts.static_shape(node.input[0]), facts.count(node.input[index])
    wanted = facts.declared_output(node)
    if data is None or count is None:
        return Range.exactly(0.0)
    keeps_zeros = any(a.name == "allowzero" and a.i for a in node.attribute)
    fits = wanted is not None and len(wanted) == count and prod(wanted) == prod(data)
    if wanted is not None and fits and (all(wanted) or keeps_zeros):
        return Range.exactly(*wanted)
    if count >= len(data):
        return Range.exactly(*(data if keeps_zeros else [0] * len(data)), *[1] * (count - len(data)))
    own, merged = data[: max(0, count - 1)], prod(data[count - 1 :])
    return Range.exactly(*(own if keeps_zeros else [0] * len(own)), *([merged] if count else []))


def _constant_shape(node: NodeProto, index: int, facts: Facts) -> Range:
    wanted = facts.declared_output(node)
    return Range.exactly(*wanted) if wanted and prod(wanted) <= 1 << 16 else Range(1, 3)


def _repeats(node: NodeProto, index: int, facts: Facts) -> Range:
    data, wanted = facts.static_shape(node.input[0]), facts.declared_output(node)
    if not data or not wanted or len(data) != len(wanted) or not all(data):
        return Range(1, 2)
    pairs = list(zip(wanted, data, strict=True))
    return Range(1, 2) if any(a % b for a, b in pairs) else Range.exactly(*(a // b for a, b in pairs))


def _broadcast(node: NodeProto, index: int, facts: Facts) -> Range:
    data, wanted = facts.static_shape(node.input[0]), facts.declared_output(node)
    if data is not None and wanted and len(wanted) == facts.count(node.input[index]):
        tail = wanted[len(wanted) - len(data) :]
        if len(data) <= len(wanted) and all(small in (1, big) for small, big in zip(data, tail, strict=True)):
            return Range.exactly(*wanted)
    return Range(1, 1)


def _cropped(node: NodeProto, index: int, facts: Facts) -> Range:
    return Range(1, 6)


def _paddings(node: NodeProto, index: int, facts: Facts) -> Range:
    """Reflection takes fewer elements than an axis has."""
    shape = [size for size in facts.shape(node.input[0]) or () if size is not None]
    mode = next((a.s for a in node.attribute if a.name == "mode"), b"constant")
    return Range(0, 2 if mode == b"constant" or not shape else min(2, max(0, min(shape) - 1)))


def _split_sizes(node: NodeProto, index: int, facts: Facts) -> Range | None:
    """Sizes that sum to the length of the axis: those of the outputs if they are declared, else about equal ones."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    length = facts.length(node.input[0], axis)
    shape = facts.shape(node.input[index])
    if node.op_type == "SplitToSequence" and not shape:
        return Range(1, 1) if length is None or length < 2 else Range(2, 2)
    count = shape[0] if shape else len(node.output)
    if length is None or not count:
        return Range(1, 1)
    declared = [facts.length(name, axis) for name in node.output]
    if len(declared) == count and all(size is not None for size in declared):
        sizes = [size for size in declared if size is not None]
        if sum(sizes) == length:
            return Range.exactly(*sizes)
    return Range.exactly(*[length // count] * (count - 1), length - length // count * (count - 1))


def _transform_length(node: NodeProto, index: int, facts: Facts) -> Range:
    length = facts.length(node.input[0], 1) or 8
    return Range(length, length)


def _frame_step(node: NodeProto, index: int, facts: Facts) -> Range:
    return Range(2, 2)


def _frame_length(node: NodeProto, index: int, facts: Facts) -> Range:
    window = facts.length(node.input[2], 0) if node.input[2] else None
    length = window or min(16, facts.length(node.input[0], 1) or 16)
    return Range(length, length)


_Rule = Callable[[NodeProto, int, Facts], Range | None]


def _fixed(low: float, high: float) -> _Rule:
    return lambda node, index, facts: Range(low, high)


_RULES: dict[tuple[str, int], _Rule] = {
    ("OneHot", 1): _fixed(8.5, 8.5),  # between two numbers, so that rounding does not move it
    ("ConstantOfShape", 0): _constant_shape,
    ("Tile", 1): _repeats,
    ("Expand", 1): _broadcast,
    ("Reshape", 1): _reshape,
    ("Slice", 1): _fixed(0, 0),
    ("Slice", 2): _fixed(1, 3),
    ("Slice", 3): _first_axes,
    ("Slice", 4): _fixed(1, 1),
    ("Split", 1): _split_sizes,
    ("SplitToSequence", 1): _split_sizes,
    ("Unsqueeze", 1): _new_axes,
    ("Squeeze", 1): _axes_of_length_one,
    ("CumSum", 1): _one_axis,
    ("CumProd", 1): _one_axis,
    ("Pad", 1): _paddings,
    ("Pad", 3): _first_axes,
    ("CenterCropPad", 1): _cropped,
    ("DFT", 1): _transform_length,
    ("DFT", 2): _signal_axis,
    ("STFT", 1): _frame_step,
    ("STFT", 3): _frame_length,
}
