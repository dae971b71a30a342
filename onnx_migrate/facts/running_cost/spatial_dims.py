"""The sizes of images and other spatial axes: convolutions, poolings, and operators that resize, sample or rearrange images."""

from __future__ import annotations

from math import floor

from onnx_migrate.facts.running_cost.node_reading import Node
from onnx_migrate.facts.running_cost.value_estimate import Dims

__all__ = [
    "affine_grid",
    "axis_of",
    "blocks",
    "convolution",
    "global_pooling",
    "grid_sample",
    "pooling",
    "resize",
    "transposed_convolution",
    "window_count",
]


def axis_of(number: int, rank: int) -> int:
    """Return an axis counted from the front. Raises IndexError for one that is not there."""
    if not -rank <= number < rank:
        raise IndexError(number)
    return number % rank


def window_count(node: Node, weights: Dims | None) -> list[tuple[int, int]] | None:
    """Return for each spatial axis of a convolution or pooling the count of its windows and the length of one."""
    dims = node.dims()
    kernel = node.attributes.get("kernel_shape") or (weights[2:] if weights is not None else None)
    if dims is None or kernel is None or len(kernel) != len(dims) - 2:
        return None
    counts = []
    auto = node.attributes.get("auto_pad", b"NOTSET")
    for axis, length in enumerate(kernel):
        stride = _of_axis(node, "strides", axis)
        extent = _of_axis(node, "dilations", axis) * (length - 1) + 1
        pads = list(node.attributes.get("pads", ())) or [0] * (2 * len(kernel))
        size = dims[axis + 2]
        # With these paddings, the count depends on the stride alone.
        if auto in (b"SAME_UPPER", b"SAME_LOWER"):
            counts.append((-(-size // stride), length))
            continue
        padded = size + (0 if auto == b"VALID" else pads[axis] + pads[axis + len(kernel)])
        room = padded - extent
        windows = (-(-room // stride) if node.number("ceil_mode", 0) else room // stride) + 1
        # A window that would start in the padding at the end does not count.
        windows -= node.number("ceil_mode", 0) and (windows - 1) * stride >= size + pads[axis]
        counts.append((max(0, windows), length))
    return counts


def _of_axis(node: Node, name: str, axis: int, default: int = 1) -> int:
    values = node.attributes.get(name)
    return int(values[axis]) if values else default


def convolution(node: Node) -> Dims | None:
    """Return the sizes of a convolution."""
    dims, weights = node.dims(), node.dims(3 if node.operator == "QLinearConv" else 1)
    windows = window_count(node, weights) if weights is not None else None
    return (
        None
        if dims is None or weights is None or windows is None
        else (dims[0], weights[0], *(count for count, _ in windows))
    )


def pooling(node: Node) -> Dims | None:
    """Return the sizes of a pooling."""
    dims, windows = node.dims(), window_count(node, None)
    return None if dims is None or windows is None else (*dims[:2], *(count for count, _ in windows))


def global_pooling(node: Node) -> Dims | None:
    """Return the sizes of a pooling of whole images."""
    dims = node.dims()
    return None if dims is None else (*dims[:2], *(1 for _ in dims[2:]))


def transposed_convolution(node: Node) -> Dims | None:
    """Return the sizes of a transposed convolution."""
    dims, weights = node.dims(), node.dims(1)
    if dims is None or weights is None:
        return None
    head = dims[0], weights[1] * node.number("group", 1)
    output_shape = node.attributes.get("output_shape")
    # The requested shape overrides pads, and may list the batch and channel axes too.
    if output_shape:
        return (*head, *map(int, output_shape[-(len(dims) - 2) :]))
    kernel = node.attributes.get("kernel_shape") or weights[2:]
    same = node.attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    pads = list(node.attributes.get("pads", ())) or [0] * (2 * len(kernel))
    sizes = []
    for axis, length in enumerate(kernel):
        stride, size = _of_axis(node, "strides", axis), dims[axis + 2]
        extent = _of_axis(node, "dilations", axis) * (length - 1) + 1
        grown = stride * (size - 1) + _of_axis(node, "output_padding", axis, 0) + extent
        sizes.append(size * stride if same else grown - pads[axis] - pads[axis + len(kernel)])
    return (*head, *sizes)


def resize(node: Node) -> Dims | None:
    """Return the sizes of a Resize or Upsample."""
    dims = node.dims()
    policy = node.attributes.get("keep_aspect_ratio_policy", b"stretch")
    if dims is None or policy != b"stretch":
        return None
    # Resize-10 has the inputs of Upsample.
    of_upsample = node.operator == "Upsample" or len(node.inputs) == 2
    sizes = None if of_upsample or not node.has_input(3) else node.numbers(3)
    scales = node.numbers(1 if of_upsample else 2, "scales")
    axes = [axis_of(axis, len(dims)) for axis in node.attributes.get("axes", range(len(dims)))]
    factors = sizes or scales
    if not factors or len(factors) != len(axes):
        return None
    result = list(dims)
    for axis, factor in zip(axes, factors, strict=True):
        result[axis] = int(factor) if sizes else floor(dims[axis] * factor)
    return tuple(result)


def affine_grid(node: Node) -> Dims | None:
    """Return the sizes of an AffineGrid."""
    size = node.numbers(1)
    return None if size is None else (int(size[0]), *map(int, size[2:]), len(size) - 2)


def grid_sample(node: Node) -> Dims | None:
    """Return the sizes of a GridSample."""
    dims, grid = node.dims(0), node.dims(1)
    return None if dims is None or grid is None else (*dims[:2], *grid[1:-1])


def blocks(node: Node) -> Dims | None:
    """Return the sizes of a DepthToSpace or SpaceToDepth."""
    dims, block = node.dims(), node.number("blocksize", 1)
    if dims is None:
        return None
    count, channels, height, width = dims
    if node.operator == "DepthToSpace":
        return count, channels // block**2, height * block, width * block
    return count, channels * block**2, height // block, width // block
