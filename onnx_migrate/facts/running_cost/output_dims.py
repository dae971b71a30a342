"""The sizes of a node's outputs, for operators whose inputs or attributes choose them.

A rule returns the sizes of each output, or None if they are not known. It never guesses sizes that depend on data.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from onnx_migrate.facts.running_cost.node_reading import Node
from onnx_migrate.facts.running_cost.rearranged_dims import (
    broadcast,
    concat,
    crop_or_pad,
    expand,
    flatten,
    gather,
    gather_nd,
    pad,
    reshape,
    sliced,
    split,
    squeeze,
    tile,
    transpose,
    unsqueeze,
    with_size,
)
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

__all__ = ["output_dims"]

Rule = Callable[[Node], Dims | None]

_LIKE_FIRST = """
    Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Bernoulli BitwiseNot Cast CastLike Ceil Celu Clip Cos Cosh
    CumProd CumSum DequantizeLinear Dropout DynamicQuantizeLinear Elu Erf Exp EyeLike Floor Gelu GroupNormalization HardSigmoid
    HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax
    LpNormalization MeanVarianceNormalization Mish Neg Not QuantizeLinear RandomNormalLike RandomUniformLike Reciprocal Relu
    ReverseSequence Round Scatter ScatterElements ScatterND Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt
    Swish Tan Tanh ThresholdedRelu Trilu
    Affine ImageScaler ParametricSoftplus Scale ScaledTanh
"""
"""Operators whose first output has the sizes of the first input."""

_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul
    Or PRelu Pow StringConcat Sub Sum Where Xor
"""
"""Operators whose output has the sizes of all inputs after broadcasting."""


def output_dims(node: Node) -> Dims | None:
    """Return the sizes of a node's first output; None if the model does not say."""
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


def _broadcast_inputs(node: Node) -> Dims | None:
    shapes = [value.dims for value in node.inputs if value is not None]
    known_shapes = [shape for shape in shapes if shape is not None]
    # An unknown shape among the inputs may broadcast to any size.
    return broadcast(known_shapes) if len(known_shapes) == len(shapes) else None


def _shape_of_input(node: Node) -> Dims | None:
    numbers = node.numbers(0)
    return None if numbers is None else tuple(map(int, numbers))


def _range(node: Node) -> Dims | None:
    bounds = [node.numbers(index) for index in range(3)]
    if any(bound is None for bound in bounds):
        return None
    (start,), (limit,), (step,) = (bound for bound in bounds if bound is not None)
    # Integer division is exact for large numbers; floats need a quotient that is rounded up.
    if isinstance(step, int):
        return (max(0, -((start - limit) // step)),)
    return (max(0, ceil((limit - start) / step)),)


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
    left_dims, right = node.dims(0), node.dims(3 if quantized else 1)
    if not left_dims or not right:
        # A vector counts as a row on the left and as a column on the right, and the result loses that axis.
        return None
    # numpy and ONNX extend a vector on its own side.
    rows = (1, *left_dims) if len(left_dims) == 1 else left_dims
    columns = (*right, 1) if len(right) == 1 else right
    outer = broadcast([rows[:-2], columns[:-2]])
    if outer is None or rows[-1] != columns[-2]:
        return None
    row = () if len(left_dims) == 1 else rows[-2:-1]
    return (*outer, *row, *(() if len(right) == 1 else columns[-1:]))


def _gemm(node: Node) -> Dims | None:
    left_dims, right = node.dims(0), node.dims(1)
    if left_dims is None or right is None:
        return None
    rows = left_dims[::-1] if node.number("transA", 0) else left_dims
    columns = right[::-1] if node.number("transB", 0) else right
    return (rows[0], columns[1])


def _second(node: Node) -> Dims | None:
    return node.dims(1)


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
    return with_size(dims, axis, 1) if node.number("keepdims", 1) else (*dims[:axis], *dims[axis + 1 :])


def _top_k(node: Node) -> Dims | None:
    dims = node.dims()
    count = [node.attributes["k"]] if "k" in node.attributes else node.numbers(1)
    if dims is None or count is None:
        return None
    return with_size(dims, axis_of(node.number("axis", -1), len(dims)), int(count[0]))


def _shape_length(node: Node) -> Dims | None:
    dims = node.dims()
    return None if dims is None else (len(dims[slice(node.number("start", 0), node.attributes.get("end"))]),)


def _shape_input(place: int) -> Rule:
    def rule(node: Node) -> Dims | None:
        numbers = node.numbers(place)
        return None if numbers is None else tuple(map(int, numbers))

    return rule


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
    return (*with_size(dims, axis, size // 2 + 1 if node.number("onesided", 0) else size)[:-1], 2)


def _recurrent(node: Node) -> Dims | None:
    dims, weights = node.dims(), node.dims(2)
    if dims is None or weights is None:
        return None
    if node.number("layout", 0):
        return dims[0], dims[1], weights[0], weights[2]
    return dims[0], weights[0], dims[1], weights[2]


def _cropped(node: Node) -> Dims | None:
    dims, border = node.dims(), node.attributes.get("border")
    if dims is None or border is None or len(dims) != 4:
        return None
    left_border, top, right, bottom = border
    rest = node.attributes.get("scale") or (dims[2] - top - bottom, dims[3] - left_border - right)
    return (*dims[:2], *rest)


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
    "CenterCropPad": crop_or_pad,
    "Concat": concat,
    "ConstantOfShape": _shape_of_input,
    "ConvTranspose": transposed_convolution,
    "Crop": _cropped,
    "DFT": _fourier,
    "Expand": expand,
    "Flatten": flatten,
    "Gather": gather,
    "GatherElements": _second,
    "GatherND": gather_nd,
    "Gemm": _gemm,
    "GridSample": grid_sample,
    "MaxUnpool": _shape_input(2),
    "MelWeightMatrix": _mel_matrix,
    "Multinomial": _multinomial,
    "OneHot": _one_hot,
    "Pad": pad,
    "Range": _range,
    "Reshape": reshape,
    "Shape": _shape_length,
    "Size": lambda _: (),
    "Slice": sliced,
    "Split": split,
    "Squeeze": squeeze,
    "Tile": tile,
    "TopK": _top_k,
    "Transpose": transpose,
    "Unsqueeze": unsqueeze,
}
