"""Scales, sizes and regions of operators on images, where they are inputs."""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.ranges import Range

__all__ = ["IMAGE_OPERATORS", "image_argument"]

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
