"""Dims of outputs that follow though onnx's inference gives up: an axis that a node does not name keeps its size.

onnx infers no dim of a Slice whose ends are computed, though they cut one axis, as in `Slice (x, [0], n, [1])` of x:
[4, 8] → [4, ?]. Each rule gets the shapes of the inputs, and their known elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_migrate.facts.shape_arithmetic import PartialArray, attributes_of
from onnx_migrate.facts.value_types import MOST_AXES

__all__ = ["Dims", "kept_dims", "merged"]

Dims = tuple[int | None, ...]
"""The dims of a value, None for one that is not known."""

Elements = list[int | float | None]


@dataclass(frozen=True)
class Asked:
    """A node, the dims of its inputs (None for an unknown rank), and a function that returns the known elements of an input."""

    node: onnx.NodeProto
    attributes: dict[str, Any]
    dims: Sequence[Dims | None]
    partial: Callable[[str], PartialArray | None]
    opset: int

    def given(self, place: int) -> bool:
        """Return whether the node has this input."""
        return place < len(self.node.input) and bool(self.node.input[place])

    def elements(self, place: int) -> Elements | None:
        """Return the elements of an input, None for each that is not known; None if not even their number is."""
        if not self.given(place):
            return None
        shape_value = self.partial(self.node.input[place])
        if shape_value is not None and shape_value.values.ndim <= 1:
            pairs = zip(
                shape_value.values.reshape(-1).tolist(), shape_value.known.reshape(-1).tolist(), strict=True
            )
            return [value if is_known else None for value, is_known in pairs]
        # An unknown vector still tells how many axes it describes, if its length is known.
        shape = self.dims[place]
        length = shape[0] if shape is not None and len(shape) == 1 else None
        # A vector is longer than twice the rank only in an invalid model; pads need two numbers for each
        # axis.
        return None if length is None or length > 2 * MOST_AXES else [None] * length

    def axes(self, place: int, rank: int) -> list[int] | None:
        """Return the axes that an attribute or else an input names, counted from the front; None if they are not known."""
        named = self.attributes.get("axes")
        if named is None:
            # Newer versions of these operators have the axes as an input.
            axis_values = self.elements(place)
            if axis_values is None or None in axis_values:
                return None
            named = [axis for axis in axis_values if axis is not None]
        axes = [int(axis) + rank if axis < 0 else int(axis) for axis in named]
        return axes if all(0 <= axis < rank for axis in axes) else None

    def axis(self, rank: int, default: int | None) -> int | None:
        """Return the axis that an attribute names, counted from the front."""
        axis = self.attributes.get("axis", default)
        if axis is None or not -rank <= axis < rank:
            return None
        return int(axis) % rank


Rule = Callable[[Asked, Dims], "Dims | None"]
"""Returns the dims of each output from those of the first input; None if not even the rank is known."""


def kept_dims(
    node: onnx.NodeProto,
    opset: int,
    dims: Sequence[Dims | None],
    partial: Callable[[str], PartialArray | None],
) -> Dims | None:
    """Return the dims of the outputs of a node of ai.onnx that follow from its inputs; None if not even the rank does."""
    if node.op_type == "Concat":
        return _concat(dims, attributes_of(node))
    rule = _RULES.get(node.op_type)
    if rule is None or not dims or dims[0] is None:
        return None
    inferred_dims = rule(Asked(node, attributes_of(node), dims, partial, opset), dims[0])
    # A negative dim follows only from an invalid node, so it counts as unknown.
    return (
        None
        if inferred_dims is None
        else tuple(dim if dim is None or dim >= 0 else None for dim in inferred_dims)
    )


def merged(inferred: Dims | None, kept: Dims | None) -> Dims | None:
    """Return the shape that two sources know together; the first wins if they contradict each other."""
    if inferred is None or kept is None or len(inferred) != len(kept):
        return kept if inferred is None else inferred
    return tuple(b if a is None else a for a, b in zip(inferred, kept, strict=True))


def _slice(asked: Asked, dims: Dims) -> Dims | None:
    starts, ends = (
        asked.attributes.get(name, asked.elements(input_index))
        for name, input_index in (("starts", 1), ("ends", 2))
    )
    count = len(starts or ends or ())
    # Without axes, the bounds belong to the first axes, in order.
    if "axes" not in asked.attributes and not asked.given(3):
        axes = list(range(count)) if count <= len(dims) else None
        # Without a start and an end, not even the number of sliced axes is known.
        if starts is None and ends is None:
            axes = None
    else:
        axes = asked.axes(3, len(dims))
    if axes is None:
        return (None,) * len(dims)
    unknown: Elements = [None] * len(axes)
    steps = asked.elements(4) if asked.given(4) else [1] * len(axes)
    output_dims = list(dims)
    for axis, start, end, step in zip(
        axes, starts or unknown, ends or unknown, steps or unknown, strict=False
    ):
        output_dims[axis] = _length(dims[axis], start, end, step)
    return tuple(output_dims)


def _length(size: int | None, start: Any, end: Any, step: Any) -> int | None:
    """Return the length of a slice of an axis, as Python cuts lists."""
    if size is None or None in (start, end, step) or not step:
        return None
    start = max(start, -size) if step < 0 else start  # a negative step starts at the first element at least
    return len(range(*slice(int(start), int(end), int(step)).indices(size)))


def _pad(asked: Asked, dims: Dims) -> Dims | None:
    rank = len(dims)
    pads = asked.attributes.get("pads", asked.attributes.get("paddings")) or asked.elements(1)
    axes = asked.axes(3, rank) if asked.given(3) else list(range(rank))
    if axes is None:
        # Begins and ends that do not match the axes say nothing about any dim.
        return (None,) * rank
    pads = pads if pads is not None and len(pads) == 2 * len(axes) else [None] * (2 * len(axes))
    output_dims = list(dims)
    for axis, begin, end in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        all_known = output_dims[axis] is not None and begin is not None and end is not None
        output_dims[axis] = (output_dims[axis] or 0) + int(begin) + int(end) if all_known else None
    return tuple(output_dims)


def _top_k(asked: Asked, dims: Dims) -> Dims | None:
    k = [asked.attributes["k"]] if "k" in asked.attributes else asked.elements(1)
    return _replaced(dims, asked.axis(len(dims), -1), k[0] if k else None)


def _replaced(dims: Dims, axis: int | None, size: Any) -> Dims:
    if axis is None:
        return (None,) * len(dims)
    return (*dims[:axis], None if size is None else int(size), *dims[axis + 1 :])


def _split(asked: Asked, dims: Dims) -> Dims | None:
    """Return the dims of a part; the size of the split axis is known only if all parts are equal."""
    axis = asked.axis(len(dims), 0)
    if axis is None:
        return (None,) * len(dims)
    parts, size = len(asked.node.output), dims[axis]
    alike = not asked.given(1) and "split" not in asked.attributes and size is not None and size % parts == 0
    return _replaced(dims, axis, (size or 0) // parts if alike else None)


def _reduce(asked: Asked, dims: Dims) -> Dims | None:
    rank = len(dims)
    keeps, named = asked.attributes.get("keepdims", 1), "axes" in asked.attributes or asked.given(1)
    if not named:
        everything = not asked.attributes.get("noop_with_empty_axes")
        return ((1,) * rank if keeps else ()) if everything else dims
    # An unknown list of axes may still tell the rank of the result, by its length.
    axes = asked.axes(1, rank)
    if axes is not None:
        if not axes:
            axes = [] if asked.attributes.get("noop_with_empty_axes") else list(range(rank))
        keepdims_dims = [1 if axis in axes else dim for axis, dim in enumerate(dims)]
        return tuple(keepdims_dims if keeps else [dim for axis, dim in enumerate(dims) if axis not in axes])
    # The axes are unknown, and a dim of 1 stays 1 whether it is reduced or not.
    if keeps:
        return tuple(1 if dim == 1 else None for dim in dims)
    # Without keepdims the rank falls by the number of axes, if the length of their input is known.
    count = asked.elements(1)
    return (None,) * (rank - len(count)) if count and len(count) <= rank else None


def _resize(asked: Asked, dims: Dims) -> Dims | None:
    stretches = asked.attributes.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    if not stretches or asked.attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        return (None,) * len(dims)
    old = asked.node.op_type == "Upsample" or asked.opset < 11
    scales = asked.attributes.get("scales") or asked.elements(1 if old else 2)
    # Upsample and Resize before opset 11 have no sizes, and the scales as input 1.
    sizes = None if old or not asked.given(3) else asked.elements(3)
    axes = asked.axes(-1, len(dims)) if "axes" in asked.attributes else list(range(len(dims)))
    if axes is None:
        return (None,) * len(dims)
    output_dims = list(dims)
    for index, axis in enumerate(axes):
        size = sizes[index] if sizes is not None and len(sizes) == len(axes) else None
        scale = scales[index] if scales is not None and len(scales) == len(axes) and sizes is None else None
        dim = dims[axis]
        if size is not None:
            # Sizes replace the scales of a Resize.
            output_dims[axis] = int(size)
        else:
            output_dims[axis] = (
                None if scale is None or dim is None else int(np.float32(dim) * np.float32(scale))
            )
    return tuple(output_dims)


def _tile(asked: Asked, dims: Dims) -> Dims | None:
    repeats = asked.elements(1)
    if repeats is None or len(repeats) != len(dims):
        return (None,) * len(dims)
    return tuple(
        0 if 0 in (dim, times) else None if dim is None or times is None else dim * int(times)
        for dim, times in zip(dims, repeats, strict=True)
    )


def _compress(asked: Asked, dims: Dims) -> Dims | None:
    if "axis" not in asked.attributes:
        return (None,)
    return _replaced(dims, asked.axis(len(dims), None), None)


def _crop_pad(asked: Asked, dims: Dims) -> Dims | None:
    axes = asked.axes(-1, len(dims)) if "axes" in asked.attributes else list(range(len(dims)))
    wanted = asked.elements(1)
    if axes is None:
        return (None,) * len(dims)
    output_dims = list(dims)
    for index, axis in enumerate(axes):
        size = wanted[index] if wanted is not None and len(wanted) == len(axes) else None
        output_dims[axis] = None if size is None else int(size)
    return tuple(output_dims)


def _one_hot(asked: Asked, dims: Dims) -> Dims | None:
    axis, depth = asked.attributes.get("axis", -1), asked.elements(1)
    if not -len(dims) - 1 <= axis <= len(dims):
        return None
    at = axis % (len(dims) + 1)
    size = depth[0] if depth else None
    return (*dims[:at], None if size is None else int(size), *dims[at:])


def _squeeze(asked: Asked, dims: Dims) -> Dims | None:
    if "axes" not in asked.attributes and not asked.given(1):
        return None if None in dims else tuple(dim for dim in dims if dim != 1)
    axes = asked.axes(1, len(dims))
    if axes is not None:
        return tuple(dim for axis, dim in enumerate(dims) if axis not in axes)
    count = asked.elements(1)
    return (None,) * (len(dims) - len(count)) if count and len(count) <= len(dims) else None


def _unsqueeze(asked: Asked, dims: Dims) -> Dims | None:
    count = asked.attributes.get("axes") or asked.elements(1)
    if count is None:
        return None
    rank = len(dims) + len(count)
    axes, rest = asked.axes(1, rank), iter(dims)
    if axes is None:
        return (None,) * rank
    return tuple(1 if axis in axes else next(rest, None) for axis in range(rank))


def _reshape(asked: Asked, dims: Dims) -> Dims | None:
    wanted = asked.attributes.get("shape") or asked.elements(1)
    if wanted is None:
        return None
    copies = not asked.attributes.get("allowzero")
    output_dims: list[int | None] = []
    for index, size in enumerate(wanted):
        copied = dims[index] if index < len(dims) else None
        # A 0 copies the dim of the input at the same index, unless allowzero is set.
        output_dims.append(copied if size == 0 and copies else None if size in (None, -1) else int(size))
    rest = math.prod([dim or 1 for dim in output_dims])
    # The -1 follows from the number of elements, if it is the only open dim.
    if (
        list(wanted).count(-1) == 1
        and None not in dims
        and output_dims.count(None) == 1
        and 0 not in output_dims
    ):
        output_dims[output_dims.index(None)] = math.prod([dim or 0 for dim in dims]) // rest
    return tuple(output_dims)


def _same(_: Asked, dims: Dims) -> Dims | None:
    return dims


def _unpool(_: Asked, dims: Dims) -> Dims | None:
    return (*dims[:2], *(None,) * (len(dims) - 2))


def _concat(shapes: Sequence[Dims | None], attributes: dict[str, Any]) -> Dims | None:
    """Return the dims of a Concat: of the other axes each is known if one of the inputs knows it."""
    known_shapes = [shape for shape in shapes if shape is not None]
    rank = len(known_shapes[0]) if known_shapes else 0
    axis = attributes.get("axis", 1)
    if not known_shapes or not -rank <= axis < rank or any(len(shape) != rank for shape in known_shapes):
        return None
    # All parts agree on the other axes, so the first number is as good as any.
    output_dims = [
        next((dim for dim in dims if dim is not None), None) for dims in zip(*known_shapes, strict=True)
    ]
    parts = [shape[axis] if shape is not None else None for shape in shapes]
    output_dims[axis] = None if None in parts else sum(part or 0 for part in parts)
    return tuple(output_dims)


_RULES: dict[str, Rule] = {
    "CenterCropPad": _crop_pad,
    "Compress": _compress,
    "MaxUnpool": _unpool,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Reshape": _reshape,
    "Resize": _resize,
    "ReverseSequence": _same,
    "Scatter": _same,
    "ScatterElements": _same,
    "ScatterND": _same,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Unsqueeze": _unsqueeze,
    "Upsample": _resize,
    **dict.fromkeys(
        (
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
            "ReduceSum", "ReduceSumSquare",
        ),
        _reduce,
    ),
}  # fmt: skip
