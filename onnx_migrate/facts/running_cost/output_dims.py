"""The sizes of a node's outputs, for operators whose inputs or attributes choose them.

A rule returns the sizes of each output, or None where they are not known. Sizes that depend on data are never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import ceil, prod

from onnx_migrate.facts.running_cost.node_reading import Node
from onnx_migrate.facts.running_cost.spatial_dims import (
    affine_grid,
    axis_of,
    blocks,
    convolution,
    global_pooling,
    grid_sample,
    pooling,
    resize,
    transposed_convolution,
)
from onnx_migrate.facts.running_cost.value_estimate import LARGEST_DIM, Dims

__all__ = ["broadcast", "output_dims"]

Rule = Callable[[Node], Dims | None]

_LIKE_FIRST = """
    Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh
    CumProd CumSum DequantizeLinear Dropout DynamicQuantizeLinear Elu Erf Exp EyeLike Floor Gelu GroupNormalization HardSigmoid
    HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax
    LpNormalization MeanVarianceNormalization Mish Neg Not QuantizeLinear RandomNormalLike RandomUniformLike Reciprocal Relu
    ReverseSequence Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt
    Swish Tan Tanh ThresholdedRelu Trilu
"""
"""Operators whose first output has the sizes of the first input."""

_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul
    Or PRelu Pow StringConcat Sub Sum Where Xor
"""
"""Operators whose output has the sizes of all inputs after broadcasting."""


def output_dims(node: Node) -> Dims | None:
    """Return the sizes of a node's first output, None where the model does not say."""
    rule = _RULES.get(node.operator)
    if rule is None:
        return None
    try:
        dims = rule(node)
    except (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return None  # of a node that is not valid
    if dims is None or min(dims, default=0) < 0:
        return None
    return tuple(min(int(size), LARGEST_DIM) for size in dims)


def broadcast(shapes: Sequence[Dims]) -> Dims | None:
    """Return the sizes that these have after broadcasting, None where they do not fit."""
    result: list[int] = []
    for sizes in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        larger = {size for size in sizes if size != 1}
        if len(larger) > 1:
            return None
        result.append(larger.pop() if larger else 1)
    return tuple(result[::-1])


def _broadcast_inputs(node: Node) -> Dims | None:
    shapes = [value.dims for value in node.inputs if value is not None]
    known = [shape for shape in shapes if shape is not None]
    return broadcast(known) if len(known) == len(shapes) else None


def _concat(node: Node) -> Dims | None:
    parts = [value.dims for value in node.inputs if value is not None]
    first = parts[0]
    if first is None or any(part is None or len(part) != len(first) for part in parts):
        return None
    axis = axis_of(node.number("axis", 1), len(first))
    return _replaced(first, axis, sum(part[axis] for part in parts if part is not None))


def _replaced(dims: Dims, axis: int, size: int) -> Dims:
    return (*dims[:axis], size, *dims[axis + 1 :])


def _expand(node: Node) -> Dims | None:
    dims, shape = node.dims(), node.numbers(1)
    return None if dims is None or shape is None else broadcast([dims, tuple(map(int, shape))])


def _tile(node: Node) -> Dims | None:
    dims, repeats = node.dims(), node.numbers(1)
    if dims is None or repeats is None or len(dims) != len(repeats):
        return None
    return tuple(size * int(count) for size, count in zip(dims, repeats, strict=True))


def _shape_of_input(node: Node) -> Dims | None:
    numbers = node.numbers(0)
    return None if numbers is None else tuple(map(int, numbers))


def _range(node: Node) -> Dims | None:
    bounds = [node.numbers(place) for place in range(3)]
    if any(bound is None for bound in bounds):
        return None
    (start,), (limit,), (step,) = (bound for bound in bounds if bound is not None)
    if isinstance(step, int):
        return (max(0, -((start - limit) // step)),)
    return (max(0, ceil((limit - start) / step)),)


def _pad(node: Node) -> Dims | None:
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


def _one_hot(node: Node) -> Dims | None:
    dims, depth = node.dims(), node.numbers(1)
    if dims is None or depth is None:
        return None
    axis = axis_of(node.number("axis", -1), len(dims) + 1)
    return (*dims[:axis], int(depth[0]), *dims[axis:])


def _shape_attribute(node: Node) -> Dims | None:
    shape = node.attributes.get("shape")
    return None if shape is None else tuple(map(int, shape))


def _window(node: Node) -> Dims | None:
    size = node.numbers(0)
    return None if size is None else (int(size[0]),)


def _mel_matrix(node: Node) -> Dims | None:
    bins, length = node.numbers(0), node.numbers(1)
    return None if bins is None or length is None else (int(length[0]) // 2 + 1, int(bins[0]))


def _matmul(node: Node) -> Dims | None:
    quantized = node.operator == "QLinearMatMul"
    left, right = node.dims(0), node.dims(3 if quantized else 1)
    if not left or not right:
        return None
    rows = (1, *left) if len(left) == 1 else left
    columns = (*right, 1) if len(right) == 1 else right
    outer = broadcast([rows[:-2], columns[:-2]])
    if outer is None or rows[-1] != columns[-2]:
        return None
    row = () if len(left) == 1 else rows[-2:-1]
    return (*outer, *row, *(() if len(right) == 1 else columns[-1:]))


def _gemm(node: Node) -> Dims | None:
    left, right = node.dims(0), node.dims(1)
    if left is None or right is None:
        return None
    rows = left[::-1] if node.number("transA", 0) else left
    columns = right[::-1] if node.number("transB", 0) else right
    return (rows[0], columns[1])


def _reshape(node: Node) -> Dims | None:
    dims, shape = node.dims(), node.numbers(1, "shape")
    if shape is None:
        return None
    keeps = not node.number("allowzero", 0)
    if dims is None and (-1 in shape or (keeps and 0 in shape)):
        return None
    sizes = [dims[at] if dims and not size and keeps else int(size) for at, size in enumerate(shape)]
    if -1 in sizes:
        assert dims is not None
        rest = prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = prod(dims) // rest
    return tuple(sizes)


def _flatten(node: Node) -> Dims | None:
    dims = node.dims()
    if dims is None:
        return None
    axis = node.number("axis", 1)
    axis += len(dims) if axis < 0 else 0
    return prod(dims[:axis]), prod(dims[axis:])


def _transpose(node: Node) -> Dims | None:
    dims = node.dims()
    if dims is None:
        return None
    return tuple(dims[axis] for axis in node.attributes.get("perm", range(len(dims) - 1, -1, -1)))


def _unsqueeze(node: Node) -> Dims | None:
    dims, axes = node.dims(), node.numbers(1, "axes")
    if dims is None or axes is None:
        return None
    rank = len(dims) + len(axes)
    inserted, rest = {axis_of(int(axis), rank) for axis in axes}, iter(dims)
    return tuple(1 if axis in inserted else next(rest) for axis in range(rank))


def _squeeze(node: Node) -> Dims | None:
    dims, axes = node.dims(), node.numbers(1, "axes")
    if dims is None or (axes is None and node.has_input(1)):
        return None
    gone = {axis_of(int(axis), len(dims)) for axis in axes} if axes is not None else None
    return tuple(
        size for axis, size in enumerate(dims) if (axis not in gone if gone is not None else size != 1)
    )


def _gather(node: Node) -> Dims | None:
    dims, places = node.dims(0), node.dims(1)
    if dims is None or places is None:
        return None
    axis = axis_of(node.number("axis", 0), len(dims))
    return (*dims[:axis], *places, *dims[axis + 1 :])


def _gather_nd(node: Node) -> Dims | None:
    dims, places = node.dims(0), node.dims(1)
    if not dims or not places:
        return None
    return (*places[:-1], *dims[node.number("batch_dims", 0) + places[-1] :])


def _second(node: Node) -> Dims | None:
    return node.dims(1)


def _slice(node: Node) -> Dims | None:
    dims, starts, ends = node.dims(), node.numbers(1, "starts"), node.numbers(2, "ends")
    if dims is None or starts is None or ends is None:
        return None
    axes = node.numbers(3, "axes") if node.has_input(3) or "axes" in node.attributes else range(len(starts))
    steps = node.numbers(4) if node.has_input(4) else [1] * len(starts)
    if axes is None or steps is None:
        return None
    sizes = list(dims)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = axis_of(int(axis), len(dims))
        if sizes[place] < LARGEST_DIM:  # more is no length of a range
            sizes[place] = _length_of(range(*slice(int(start), int(end), int(step)).indices(sizes[place])))
    return tuple(sizes)


def _length_of(steps: range) -> int:
    """Return the length of a range, which len() has only up to 2^63."""
    return max(0, (steps.stop - steps.start + steps.step - (1 if steps.step > 0 else -1)) // steps.step)


def _reduced(node: Node) -> Dims | None:
    dims, axes = node.dims(), node.numbers(1, "axes")
    if dims is None or (axes is None and node.has_input(1)):
        return None
    if not axes and node.number("noop_with_empty_axes", 0):
        return dims
    gone = {axis_of(int(axis), len(dims)) for axis in axes} if axes else set(range(len(dims)))
    if node.number("keepdims", 1):
        return tuple(1 if axis in gone else size for axis, size in enumerate(dims))
    return tuple(size for axis, size in enumerate(dims) if axis not in gone)


def _place_of_extreme(node: Node) -> Dims | None:
    dims = node.dims()
    if dims is None:
        return None
    axis = axis_of(node.number("axis", 0), len(dims))
    return _replaced(dims, axis, 1) if node.number("keepdims", 1) else (*dims[:axis], *dims[axis + 1 :])


def _top_k(node: Node) -> Dims | None:
    dims = node.dims()
    count = [node.attributes["k"]] if "k" in node.attributes else node.numbers(1)
    if dims is None or count is None:
        return None
    return _replaced(dims, axis_of(node.number("axis", -1), len(dims)), int(count[0]))


def _shape_length(node: Node) -> Dims | None:
    dims = node.dims()
    return None if dims is None else (len(dims[slice(node.number("start", 0), node.attributes.get("end"))]),)


def _split(node: Node) -> Dims | None:
    dims = node.dims()
    if dims is None:
        return None
    axis = axis_of(node.number("axis", 0), len(dims))
    lengths = node.numbers(1, "split") if node.has_input(1) or "split" in node.attributes else None
    if lengths is None and node.has_input(1):
        return None
    return _replaced(dims, axis, int(lengths[0]) if lengths else -(-dims[axis] // node.outputs))


def _shape_input(place: int) -> Rule:
    def rule(node: Node) -> Dims | None:
        numbers = node.numbers(place)
        return None if numbers is None else tuple(map(int, numbers))

    return rule


def _crop_or_pad(node: Node) -> Dims | None:
    dims, sizes = node.dims(), node.numbers(1)
    if dims is None or sizes is None:
        return None
    result = list(dims)
    for axis, size in zip(node.attributes.get("axes", range(len(dims))), sizes, strict=True):
        result[axis_of(int(axis), len(dims))] = int(size)
    return tuple(result)


def _multinomial(node: Node) -> Dims | None:
    dims = node.dims()
    return None if dims is None else (dims[0], node.number("sample_size", 1))


def _fourier(node: Node) -> Dims | None:
    dims, length = node.dims(), node.numbers(1) if node.has_input(1) else None
    if dims is None or (length is None and node.has_input(1)) or node.has_input(2):
        return None
    if node.number("inverse", 0) and node.number("onesided", 0):
        return None
    axis = axis_of(node.number("axis", -2 if node.has_input(1) else 1), len(dims))
    size = int(length[0]) if length else dims[axis]
    return (*_replaced(dims, axis, size // 2 + 1 if node.number("onesided", 0) else size)[:-1], 2)


def _recurrent(node: Node) -> Dims | None:
    dims, weights = node.dims(), node.dims(2)
    if dims is None or weights is None:
        return None
    if node.number("layout", 0):
        return dims[0], dims[1], weights[0], weights[2]
    return dims[0], weights[0], dims[1], weights[2]


def _like_first(node: Node) -> Dims | None:
    return node.dims()


def _alike(rule: Rule, operators: str) -> dict[str, Rule]:
    return dict.fromkeys(operators.split(), rule)


_RULES: dict[str, Rule] = {
    **_alike(_like_first, _LIKE_FIRST),
    **_alike(_broadcast_inputs, _BROADCASTING),
    **_alike(convolution, "Conv ConvInteger QLinearConv"),
    **_alike(pooling, "AveragePool LpPool MaxPool"),
    **_alike(global_pooling, "GlobalAveragePool GlobalLpPool GlobalMaxPool"),
    **_alike(_matmul, "MatMul MatMulInteger QLinearMatMul"),
    **_alike(_recurrent, "GRU LSTM RNN"),
    **_alike(resize, "Resize Upsample"),
    **_alike(_place_of_extreme, "ArgMax ArgMin"),
    **_alike(blocks, "DepthToSpace SpaceToDepth"),
    **_alike(_shape_attribute, "RandomNormal RandomUniform"),
    **_alike(_window, "BlackmanWindow HammingWindow HannWindow"),
    **_alike(
        _reduced,
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare",
    ),
    "AffineGrid": affine_grid,
    "CenterCropPad": _crop_or_pad,
    "Concat": _concat,
    "ConstantOfShape": _shape_of_input,
    "ConvTranspose": transposed_convolution,
    "DFT": _fourier,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _second,
    "GatherND": _gather_nd,
    "Gemm": _gemm,
    "GridSample": grid_sample,
    "MaxUnpool": _shape_input(2),
    "MelWeightMatrix": _mel_matrix,
    "Multinomial": _multinomial,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape_length,
    "Size": lambda _: (),
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
