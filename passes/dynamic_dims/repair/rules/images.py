"""Repair rules of Resize, whose constant sizes become those of other values, and of pools whose window is the whole image."""

from __future__ import annotations

from collections import deque

import numpy as np
import onnx

from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.standard.resize import exact_length, resized_axes, sizes_are_lengths

from ..domain import Array, Dim, Dims, fixed
from ..domain.values import known_value
from ..node_context import NodeContext
from ..rule_table import rule

_KEEP_SIZES = frozenset(
    {
        "Relu", "LeakyRelu", "PRelu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Elu", "Selu", "Clip", "Gelu", "Mish",
        "Softplus", "Identity", "Dropout", "BatchNormalization", "InstanceNormalization", "Cast", "Softmax",
    }
)  # fmt: skip
_COMBINE = frozenset({"Concat", "Add", "Sub", "Mul", "Div", "Sum", "Max", "Min", "Where"})
Partner = dict[int, tuple[Dim, str]]
"""By axis of the result, the equal axis of the value that the result is combined with, and that value's name."""
_MAX_NODES = 64
"""The number of nodes after a Resize among which its partner is looked for."""


@rule("Resize")
def resize(context: NodeContext) -> None:
    """Replace constant sizes by lengths: of the value that the result is combined with, of the input, or by a ratio.

    A result that is added to another value, as in a feature pyramid, must have that value's size, also where a ratio
    would round otherwise. An axis that does not vary, as after a pool to a fixed size, gets its length from there alone.
    """
    own, sizes = context.dims(0), context.entries(3)
    if sizes is None:
        sizes = _of_scales(context)
    if own is None or sizes is None:
        return
    if not sizes_are_lengths(context.attributes.get("keep_aspect_ratio_policy", b"stretch").decode()):
        return
    axes = resized_axes(context.attributes.get("axes", ()), len(own))
    if len(axes) != len(sizes):
        return
    dims = [own[axis] for axis in axes]
    stuck = [
        dim is not None and isinstance(size, int) and (dim.varies or dim.frozen != size)
        for dim, size in zip(dims, sizes, strict=True)
    ]
    if not any(stuck):
        return
    frozen = [size if isinstance(size, int) else size.frozen for size in sizes]
    partner = _partner(context, dict(zip(axes, frozen, strict=True)), own)
    entries = [
        _entry(context, axis, dim, size, partner) if isinstance(size, int) else size
        for axis, dim, size in zip(axes, dims, sizes, strict=True)
    ]
    if entries == sizes:
        return
    by_partner = any(dim.varies and dim != own[axis] for axis, (dim, _) in partner.items())
    scales = None if by_partner else _scales(context, dims, entries)
    if scales is not None:
        name = context.rw.constant(scales, "scales")
        context.rw.set_input(3, "")
        context.set_input(
            2, name, f"sizes {context.text(sizes)} → scales {scales.tolist()}", known_value(scales)
        )
        return
    # Other values may have these lengths under the assignments, and differ from the partner's at odd sizes.
    prefer = [name for _, name in partner.values()]
    constant_scales = context.constant(2)
    if context.rw.input(2) and (context.rw.version >= 13 or constant_scales is None or constant_scales.size):
        # Below opset 13 scales are required, and empty ones say that there are none.
        no_scales = np.zeros(0, np.float32)
        none = "" if context.rw.version >= 13 else context.rw.constant(no_scales, "no_scales")
        context.set_input(2, none, "by sizes instead of scales", known_value(no_scales) if none else None)
    context.write_shape(3, entries, f"sizes {context.text(sizes)} → {context.text(entries)}", prefer)


def _of_scales(context: NodeContext) -> list[int | Dim] | None:
    """Return the sizes that constant scales result in, None if they scale an axis that varies."""
    scales, dims = context.constant(2), context.known(0)
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


def _entry(context: NodeContext, axis: int, dim: Dim | None, size: int, partner: Partner) -> int | Dim:
    if axis in partner:
        length = partner[axis][0]
        return length if length.varies else size
    if dim is None or not dim.varies:
        return size
    if dim.frozen == size:
        return dim
    if dim.of_batch:
        context.refuse(f"it resizes axis {axis}, which is the batch, from {dim.frozen} to {size}", 3)
    # A size that an input also has is most likely the size of that input.
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
    """Return the scales, if all sizes are whole multiples of the input's lengths, else None."""
    factors = []
    for dim, entry in zip(dims, entries, strict=True):
        if dim is None:
            return None
        size = fixed(entry) if isinstance(entry, int) else entry
        ratios = set(map(divmod, size.sizes, dim.sizes))
        ratio, rest = ratios.pop()
        if ratios or rest or (isinstance(entry, Dim) and entry != dim and context.assignments.symbol(entry)):
            return None  # a multiple under the assignments; at odd sizes a symbol may be none
        factors.append(ratio)
    return np.array(factors, np.float32)


def _partner(context: NodeContext, sizes: dict[int, int], own: Dims) -> Partner:
    """Return the axes of the first value that the result is combined with and that had these `sizes`, by axis.

    The result's consumers are followed through operators that keep height and width.
    """
    own_names = {name for name in context.node.output if name}
    queue = deque(own_names)
    seen = 0
    while queue and seen < _MAX_NODES:
        name = queue.popleft()
        for reader in context.graph_state.consumers.get(name, ()):
            seen += 1
            if reader.op_type in _COMBINE:
                along = _along(reader, len(own))
                for other in reader.input:
                    if other in own_names or not other:
                        continue
                    partner_name = _with_known_dims(context, other)
                    partner_dims = _fits(context.graph_state.value(partner_name).dims, sizes, along, own)
                    if partner_dims:
                        return {axis: (dim, partner_name) for axis, dim in partner_dims.items()}
            if reader.op_type in _KEEP_SIZES or reader.op_type in _COMBINE or _same_conv(reader):
                fresh = [output for output in reader.output if output and output not in own_names]
                own_names.update(fresh)
                queue.extend(fresh)
    return {}


def _along(node: onnx.NodeProto, rank: int) -> int | None:
    if node.op_type != "Concat":
        return None
    return next((attribute.i % rank for attribute in node.attribute if attribute.name == "axis"), 1)


def _fits(dims: Dims | None, sizes: dict[int, int], along: int | None, own: Dims) -> dict[int, Dim]:
    """Return the axes of another operand that must equal the result's, empty if they had other sizes than the result."""
    if dims is None or len(dims) != len(own):
        return {}
    fitting_dims: dict[int, Dim] = {}
    for axis, size in sizes.items():
        mine, dim = own[axis], dims[axis]
        if mine is None or axis == along or (not mine.varies and mine.frozen == size):
            continue
        if mine.frozen == size and axis < 2:
            continue
        if dim is None or dim.frozen != size:
            return {}
        fitting_dims[axis] = dim
    return fitting_dims


def _with_known_dims(context: NodeContext, name: str) -> str:
    """Return a value of known shape: this one, or an ancestor with the same height and width."""
    for _ in range(_MAX_NODES):
        if context.graph_state.value(name).dims is not None:
            break
        producer = context.graph_state.producers.get(name)
        if producer is None or not (producer.op_type in _KEEP_SIZES or _same_conv(producer)):
            break
        name = producer.input[0]
    return name


def _same_conv(node: onnx.NodeProto) -> bool:
    """Return whether a node is a convolution that keeps height and width."""
    attributes = attributes_of(node) if node.op_type == "Conv" else {}
    kernel = attributes.get("kernel_shape")
    if not kernel or any(stride != 1 for stride in attributes.get("strides", ())):
        return False
    rank = len(kernel)
    pads, dilations = attributes.get("pads") or [0] * 2 * rank, attributes.get("dilations") or [1] * rank
    return all(pads[axis] + pads[axis + rank] == (kernel[axis] - 1) * dilations[axis] for axis in range(rank))


_GLOBAL = {"AveragePool": "GlobalAveragePool", "MaxPool": "GlobalMaxPool"}


@rule("AveragePool", "MaxPool")
def pool(context: NodeContext) -> None:
    """Make a pool over the whole image a global pool, if a later node is in conflict with an output of varying size.

    An average is then equal up to rounding: ONNX Runtime's GlobalAveragePool adds up the elements in another order.
    """
    dims = context.known(0)
    attributes, node = context.attributes, context.node
    if dims is None or len([name for name in node.output if name]) != 1:
        return
    pads = attributes.get("pads") or [0] * (2 * len(dims[2:]))
    around = [dim.frozen + sum(pads[axis :: len(dims) - 2]) for axis, dim in enumerate(dims[2:])]
    plain = set(attributes.get("dilations", [1])) == {1}
    # Such an average counts the padding too, which a global pool does not have.
    if any(pads) and attributes.get("count_include_pad"):
        return
    if attributes.get("kernel_shape") != around or not plain or not any(dim.varies for dim in dims[2:]):
        return
    if attributes.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return
    pattern = (node.op_type, tuple(dim.sizes for dim in dims))
    if not context.hypotheses.choose(context.label, pattern, 2):
        return
    old = node.op_type
    context.rw.rename(_GLOBAL[old])
    context.rw.drop(*(attribute.name for attribute in list(node.attribute)))
    context.rw.note(
        f"a window of {attributes['kernel_shape']}, the whole image → a global pool, for images of any size"
    )
    if old == "AveragePool":
        context.rw.exactness = Exactness.EQUIVALENT
