"""The sizes that arrays have after they are put together, cut, padded, repeated, or given another shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod

from onnx_migrate.facts.running_cost.node_reading import Node
from onnx_migrate.facts.running_cost.spatial_dims import axis_of
from onnx_migrate.facts.running_cost.value_estimate import LARGEST_DIM, Dims

__all__ = [
    "broadcast",
    "concat",
    "crop_or_pad",
    "expand",
    "flatten",
    "gather",
    "gather_nd",
    "pad",
    "reshape",
    "sliced",
    "split",
    "squeeze",
    "tile",
    "transpose",
    "unsqueeze",
    "with_size",
]


def broadcast(shapes: Sequence[Dims]) -> Dims | None:
    """Return the sizes that these have after broadcasting; None if they do not fit."""
    result: list[int] = []
    for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        larger = {size for size in sizes if size != 1}
        if len(larger) > 1:
            return None
        result.append(larger.pop() if larger else 1)
    return tuple(result[::-1])


def concat(node: Node) -> Dims | None:
    """Return the sizes of inputs that are put together along an axis."""
    parts = [value.dims for value in node.inputs if value is not None]
    first = parts[0]
    if first is None or any(part is None or len(part) != len(first) for part in parts):
        return None
    axis = axis_of(node.number("axis", 1), len(first))
    return with_size(first, axis, sum(part[axis] for part in parts if part is not None))


def with_size(dims: Dims, axis: int, size: int) -> Dims:
    """Return the sizes with another one of an axis."""
    return (*dims[:axis], size, *dims[axis + 1 :])


def expand(node: Node) -> Dims | None:
    """Return the sizes of an input that is broadcast to a shape."""
    dims, shape = node.dims(), node.numbers(1)
    return None if dims is None or shape is None else broadcast([dims, tuple(map(int, shape))])


def tile(node: Node) -> Dims | None:
    """Return the sizes of an input after its repetition along each axis."""
    dims, repeats = node.dims(), node.numbers(1)
    if dims is None or repeats is None or len(dims) != len(repeats):
        return None
    return tuple(size * int(count) for size, count in zip(dims, repeats, strict=True))


def pad(node: Node) -> Dims | None:
    """Return the sizes with the padding before and after each axis; padding may be negative."""
    dims = node.dims()
    pads = node.numbers(1, "pads" if "pads" in node.attributes else "paddings")
    if dims is None or pads is None:
        return None
    axes = range(len(dims))
    if node.has_input(3):
        named = node.numbers(3)
        if named is None:
            return None
        axes = [axis_of(int(axis), len(dims)) for axis in named]  # type: ignore[assignment]
    sizes = list(dims)
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        sizes[axis] += int(before) + int(after)
    return tuple(sizes)


def reshape(node: Node) -> Dims | None:
    """Return the sizes that a shape gives; 0 stands for the input's size, and -1 for the remaining elements."""
    dims, shape = node.dims(), node.numbers(1, "shape")
    if shape is None:
        return None
    keeps = not node.number("allowzero", 0)
    # Both need the sizes of the input.
    if dims is None and (-1 in shape or (keeps and 0 in shape)):
        return None
    sizes = [dims[at] if dims and not size and keeps else int(size) for at, size in enumerate(shape)]
    if -1 in sizes:
        assert dims is not None
        rest = prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = prod(dims) // rest
    return tuple(sizes)


def flatten(node: Node) -> Dims | None:
    """Return the two sizes before and behind an axis."""
    dims = node.dims()
    if dims is None:
        return None
    axis = node.number("axis", 1)
    axis += len(dims) if axis < 0 else 0
    return prod(dims[:axis]), prod(dims[axis:])


def transpose(node: Node) -> Dims | None:
    """Return the sizes in another order."""
    dims = node.dims()
    if dims is None:
        return None
    return tuple(dims[axis] for axis in node.attributes.get("perm", range(len(dims) - 1, -1, -1)))


def unsqueeze(node: Node) -> Dims | None:
    """Return the sizes with axes of length 1 inserted."""
    dims, axes = node.dims(), node.numbers(1, "axes")
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    inserted, rest = {axis_of(int(axis), rank) for axis in axes}, iter(dims)
    return tuple(1 if axis in inserted else next(rest) for axis in range(rank))


def squeeze(node: Node) -> Dims | None:
    """Return the sizes without some axes of length 1, or all."""
    dims, axes = node.dims(), node.numbers(1, "axes")
    if dims is None or (axes is None and node.has_input(1)):
        return None
    gone = {axis_of(int(axis), len(dims)) for axis in axes} if axes is not None else None
    return tuple(
        size for axis, size in enumerate(dims) if (axis not in gone if gone is not None else size != 1)
    )


def gather(node: Node) -> Dims | None:
    """Return the sizes with those of the indices in place of an axis."""
    dims, index_dims = node.dims(0), node.dims(1)
    if dims is None or index_dims is None:
        return None
    axis = axis_of(node.number("axis", 0), len(dims))
    return (*dims[:axis], *index_dims, *dims[axis + 1 :])


def gather_nd(node: Node) -> Dims | None:
    """Return the sizes of the indices, followed by the sizes of the part that each index selects."""
    dims, index_dims = node.dims(0), node.dims(1)
    if not dims or not index_dims:
        return None
    return (*index_dims[:-1], *dims[node.number("batch_dims", 0) + index_dims[-1] :])


def sliced(node: Node) -> Dims | None:
    """Return the sizes of a part of each axis."""
    dims, starts, ends = node.dims(), node.numbers(1, "starts"), node.numbers(2, "ends")
    if dims is None or starts is None or ends is None:
        return None
    axes = node.numbers(3, "axes") if node.has_input(3) or "axes" in node.attributes else range(len(starts))
    steps = node.numbers(4) if node.has_input(4) else [1] * len(starts)
    if axes is None or steps is None:
        return None
    sizes = list(dims)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis_index = axis_of(int(axis), len(dims))
        # Python clamps starts and ends like ONNX, but only for lengths that a range can have.
        if sizes[axis_index] < LARGEST_DIM:  # more is no length of a range
            sizes[axis_index] = _length_of(
                range(*slice(int(start), int(end), int(step)).indices(sizes[axis_index]))
            )
    return tuple(sizes)


def _length_of(steps: range) -> int:
    """Return the length of a range, which len() has only up to 2^63."""
    return max(0, (steps.stop - steps.start + steps.step - (1 if steps.step > 0 else -1)) // steps.step)


def split(node: Node) -> Dims | None:
    """Return the sizes of the first part of an axis."""
    dims = node.dims()
    if dims is None:
        return None
    axis = axis_of(node.number("axis", 0), len(dims))
    lengths = node.numbers(1, "split") if node.has_input(1) or "split" in node.attributes else None
    if lengths is None and node.has_input(1):
        return None
    return with_size(dims, axis, int(lengths[0]) if lengths else -(-dims[axis] // node.outputs))


def crop_or_pad(node: Node) -> Dims | None:
    """Return the sizes that a CenterCropPad asks for."""
    dims, sizes = node.dims(), node.numbers(1)
    if dims is None or sizes is None:
        return None
    result = list(dims)
    for axis, size in zip(node.attributes.get("axes", range(len(dims))), sizes, strict=True):
        result[axis_of(int(axis), len(dims))] = int(size)
    return tuple(result)
