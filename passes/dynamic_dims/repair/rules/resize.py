"""Resizes to constant sizes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import onnx

from onnx_migrate.spec.resize import exact_length, resized_axes, sizes_are_lengths

from ..domain import Array, Dim, Dims, Value
from ..node_context import NodeContext

__all__ = ["resize"]

_SAME = frozenset(
    {
        "Relu", "LeakyRelu", "PRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "Selu", "Clip", "Gelu", "Mish",
        "Softplus", "Identity", "Dropout", "BatchNormalization", "InstanceNormalization", "Cast", "Softmax",
    }
)  # fmt: skip
_JOINS = frozenset({"Concat", "Add", "Sub", "Mul", "Div", "Sum", "Max", "Min", "Where"})
Joined = dict[int, tuple[Dim, str]]
"""The axes that are as long as another value's, with that value."""
_FAR = 64
"""Nodes between a Resize and what it is joined with, above which none is looked for."""


def resize(context: NodeContext) -> None:
    """Let sizes follow: the input's axes where these are copied, else what the result is joined with, or a ratio.

    What was pooled to few of a kind, and is laid over what it is joined with, follows that alone.
    """
    x, sizes = context.input(0), context.entries(3)
    if x is None or x.dims is None:
        return
    if sizes is None:
        sizes = _of_scales(context, x)
    if sizes is None:
        return
    if not sizes_are_lengths(context.attributes.get("keep_aspect_ratio_policy", b"stretch").decode()):
        return
    rank = len(x.dims)
    axes = resized_axes(context.attributes.get("axes", ()), rank)
    if len(axes) != len(sizes):
        return
    dims = [x.dims[axis] for axis in axes]
    stuck = [
        dim is not None and isinstance(size, int) and (dim.varies or dim.frozen != size)
        for dim, size in zip(dims, sizes, strict=True)
    ]
    if not any(stuck):
        return
    joined = _joined(context, {axis: _frozen(size) for axis, size in zip(axes, sizes, strict=True)}, x.dims)
    entries: list[int | Dim] = []
    for axis, dim, size in zip(axes, dims, sizes, strict=True):
        entries.append(_entry(context, axis, dim, size, joined) if isinstance(size, int) else size)
    if entries == sizes:
        return
    scales = (
        None
        if any(dim.varies and dim != x.dims[axis] for axis, (dim, _) in joined.items())
        else _scales(context, dims, entries)
    )
    if scales is not None:
        name = context.rw.constant(scales, "scales")
        reason = f"sizes {context.text(sizes)} → scales {scales.tolist()}"
        context.set_input(3, "", reason)
        context.set_input(2, name, reason)
        context.rw.reasons.pop()
        context.inputs[2] = Value(
            onnx.TensorProto.FLOAT,
            (context.assignments.fixed(len(scales)),),
            (scales,) * context.assignments.count,
        )
        return
    # Not just any value that is as long in these worlds: at odd sizes only the one it is joined with is.
    prefer = [name for _, name in joined.values()]
    if context.rw.input(2):
        context.set_input(2, "", "by sizes instead of scales")
    context.write_shape(3, entries, f"sizes {context.text(sizes)} → {context.text(entries)}", prefer)


def _of_scales(context: NodeContext, x: Value) -> list[int | Dim] | None:
    """Return the sizes that scales make, if they enlarge nothing but axes that do not move."""
    value = context.input(2)
    scales = value.constant() if value is not None else None
    dims = x.known
    if scales is None or dims is None or scales.shape != (len(dims),) or context.attributes.get("axes"):
        return None
    sizes: list[int | Dim] = []
    for dim, scale in zip(dims, scales.tolist(), strict=True):
        if scale == 1:
            sizes.append(dim if dim.varies else dim.frozen)
            continue
        length = None if dim.varies else exact_length(dim.frozen, scale)
        if length is None:
            return None
        sizes.append(length)
    return sizes


def _frozen(size: int | Dim) -> int:
    return size if isinstance(size, int) else size.frozen


def _entry(context: NodeContext, axis: int, dim: Dim | None, size: int, joined: Joined) -> int | Dim:
    if axis in joined:
        met = joined[axis][0]
        return met if met.varies else size
    if dim is None or not dim.varies:
        return size
    if dim.frozen == size:
        return dim
    if context.assignments.carries_batch(dim):
        context.refuse(f"it resizes axis {axis}, which is the batch, from {dim.frozen} to {size}", 3)
    same = [other for other in context.graph_state.varying_dims(size) if context.assignments.symbol(other)]
    if same:
        return same[0]
    if size % dim.frozen == 0:
        return Dim(tuple(length * (size // dim.frozen) for length in dim.sizes))
    if dim.frozen % size == 0 and all(length % (dim.frozen // size) == 0 for length in dim.sizes):
        return Dim(tuple(length // (dim.frozen // size) for length in dim.sizes))
    other = context.graph_state.varying_dims(size)
    if not other:
        context.refuse(
            f"its constant size {size} for axis {axis} cannot be derived from {context.name_of(dim)}, the length of that"
            " axis, or from another length that changes",
            3,
        )
    return other[0]


def _scales(context: NodeContext, dims: list[Dim | None], entries: list[int | Dim]) -> Array | None:
    """Return whole factors, if the sizes are these and follow the input alone."""
    found = []
    for dim, entry in zip(dims, entries, strict=True):
        sizes = entry.sizes if isinstance(entry, Dim) else (entry,) * context.assignments.count
        if dim is None or any(size % length for size, length in zip(sizes, dim.sizes, strict=True)):
            return None
        ratios = {size // length for size, length in zip(sizes, dim.sizes, strict=True)}
        if len(ratios) > 1 or (isinstance(entry, Dim) and entry != dim and context.assignments.symbol(entry)):
            return None  # equal here; at odd sizes a symbol may not be a multiple
        found.append(ratios.pop())
    return np.array(found, np.float32)


def _joined(context: NodeContext, sizes: dict[int, int], own: Dims) -> Joined:
    """Return the lengths of what the result is added to or joined with, which had these sizes, by axis."""
    mine = {name for name in context.node.output if name}
    queue = deque(mine)
    seen = 0
    while queue and seen < _FAR:
        name = queue.popleft()
        for reader in context.graph_state.consumers.get(name, ()):
            seen += 1
            if reader.op_type in _JOINS:
                along = _along(reader, len(own))
                for other in reader.input:
                    if other in mine or not other:
                        continue
                    name_before = _before(context, other)
                    found = _fits(context.graph_state.value(name_before).dims, sizes, along, own)
                    if found:
                        return {axis: (dim, name_before) for axis, dim in found.items()}
            if reader.op_type in _SAME or reader.op_type in _JOINS or _same_conv(reader):
                fresh = [output for output in reader.output if output and output not in mine]
                mine.update(fresh)
                queue.extend(fresh)
    return {}


def _along(node: onnx.NodeProto, rank: int) -> int | None:
    if node.op_type != "Concat":
        return None
    return next((attribute.i % rank for attribute in node.attribute if attribute.name == "axis"), 1)


def _fits(dims: Dims | None, sizes: dict[int, int], along: int | None, own: Dims) -> dict[int, Dim]:
    """Return the axes that another operand and a Resize's result must have in common, if they had."""
    if dims is None or len(dims) != len(own):
        return {}
    found: dict[int, Dim] = {}
    for axis, size in sizes.items():
        mine, dim = own[axis], dims[axis]
        if mine is None or axis == along or (not mine.varies and mine.frozen == size):
            continue
        if mine.frozen == size and axis < 2:
            continue
        if dim is None or dim.frozen != size:
            return {}
        found[axis] = dim
    return found


def _before(context: NodeContext, name: str) -> str:
    """Return a value, or the one before it of known shape that has the same lengths but for channels."""
    for _ in range(_FAR):
        if context.graph_state.value(name).dims is not None:
            break
        producer = context.graph_state.producers.get(name)
        if producer is None or not (producer.op_type in _SAME or _same_conv(producer)):
            break
        name = producer.input[0]
    return name


def _same_conv(node: onnx.NodeProto) -> bool:
    if node.op_type != "Conv":
        return False
    strides, pads, kernel, dilations = _window(node)
    if any(stride != 1 for stride in strides) or not kernel:
        return False
    half = len(kernel)
    pads = pads or [0] * (2 * half)
    dilations = dilations or [1] * half
    return all(pads[axis] + pads[axis + half] == (kernel[axis] - 1) * dilations[axis] for axis in range(half))


def _window(node: onnx.NodeProto) -> Iterator[list[int]]:
    attributes = {attribute.name: list(attribute.ints) for attribute in node.attribute if attribute.ints}
    return iter([attributes.get(name, []) for name in ("strides", "pads", "kernel_shape", "dilations")])
