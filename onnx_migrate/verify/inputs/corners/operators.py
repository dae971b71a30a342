"""Which operators treat NaN, infinities and the ends of integer types the same way in every kernel, so that these may be fed."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from onnx_migrate.verify.inputs.corners.flow import Flow
from onnx_migrate.verify.inputs.corners.paths import MOVING, operators

__all__ = [
    "bounds_infinities",
    "casts_to_integers",
    "computes_integers_alone",
    "keeps_infinities",
    "keeps_nan",
    "multiplies_inputs",
    "normalises",
    "runs_long_on_large_numbers",
]

_MOVING = MOVING | operators(
    """
    Concat Shape Size Constant ConstantOfShape Where If SequenceConstruct SequenceInsert ConcatFromSequence SequenceEmpty
    SequenceLength OptionalHasElement Range
    """
)
_ELEMENTWISE = operators(
    """
    Add Sub Mul Div Neg Abs Sqrt Exp Log Reciprocal Floor Ceil Round IsNaN IsInf Equal Greater GreaterOrEqual Less
    LessOrEqual Not And Or Xor Sigmoid Tanh Sin Cos Erf Sum Softplus Softsign Imputer
    """
)
_SUMMING = operators(
    """
    MatMul Gemm Conv ReduceSum ReduceMean Softmax LogSoftmax BatchNormalization LayerNormalization Einsum CumSum
    GlobalAveragePool AveragePool
    """
)
"""Operators that make NaN of every sum with a NaN in it. With infinities it matters in which order they add."""

_OVER_ELEMENTS = frozenset({"Scan", "SequenceMap"})
"""Operators that run a body as often as an input is long."""

_BODIES = _OVER_ELEMENTS | {"Loop"}
"""Operators that run a body, whose own operators count: of floats they move elements only."""

_BOUNDING = frozenset({"Clip", "Max", "Min", "Relu", "IsInf"})
"""Operators that make the bound of an infinity, or keep it."""

_OF_INTEGERS = operators(
    """
    Add Sub Mul Neg Abs Equal Greater GreaterOrEqual Less LessOrEqual Not And Or Xor Max Min Sign Clip Div Mod BitwiseAnd
    BitwiseOr BitwiseXor BitwiseNot Sum Relu Imputer
    """
)
_SHAPED = frozenset(
    {"Reshape", "Expand", "Tile", "Slice", "Gather", "Split", "Pad", "Squeeze", "Unsqueeze", "Div", "Mod"}
)
"""Operators whose second input must be a constant, since it would be a size, an index or a divisor."""

_COSTLY = frozenset({"RoiAlign", "MaxRoiPool", "CropAndResize", "Range", "MelWeightMatrix"})
"""Operators for which large numbers take much time or memory, or have no meaning."""

_TO_INTEGERS = operators(
    """
    GridSample DeformConv RoiAlign MaxRoiPool CropAndResize AffineGrid QuantizeLinear DynamicQuantizeLinear
    """
)
"""Operators that make positions or steps of floats; ONNX Runtime's kernels do not bring all large ones to the type's ends."""

_RESIZING = frozenset({"Resize", "Upsample"})
_SIZED = _RESIZING | operators(
    """
    Expand Tile Pad Reshape OneHot Slice Split TopK CenterCropPad AffineGrid
    """
)

_DIVIDING = frozenset({"Div", "Reciprocal", "Pow", "Sqrt", "Log"})

_MOST_TURNS = 1 << 12
"""Turns of a loop that end soon enough."""

_NEEDING_SIZES = frozenset(
    {"ConstantOfShape", "Range", "Compress", "SequenceAt", "SplitToSequence", "GatherElements", "GatherND"}
)


def keeps_nan(flow: Flow) -> bool:
    """Return whether all operators of a model make NaN of NaN, or treat it according to the standard.

    The kernels of Max, Min, Relu, Clip, MaxPool and TopK keep NaN in some positions only, so these operators do not count.
    """
    return flow.operators <= _MOVING | _BODIES | _ELEMENTWISE | _SUMMING and not casts_to_integers(flow)


def keeps_infinities(flow: Flow) -> bool:
    """Whether all operators of a model treat infinities the same way however they are computed."""
    return flow.operators <= _MOVING | _BODIES | _ELEMENTWISE and not casts_to_integers(flow)


def normalises(flow: Flow) -> bool:
    """Whether a model divides by computed numbers, so that a small number added to the divisor matters for small inputs."""
    return any(name in _DIVIDING or "Norm" in name for name in flow.operators)


def bounds_infinities(flow: Flow) -> bool:
    """Whether infinities alone, without NaN, come out of every kernel alike: a bound takes their place, or none does."""
    predictable = _MOVING | _BODIES | _BOUNDING
    return bool(flow.operators & _BOUNDING) and flow.operators <= predictable and not casts_to_integers(flow)


def casts_to_integers(flow: Flow) -> bool:
    """Whether a model makes integers of other numbers: the standard leaves the result open for NaN and too large numbers."""
    return any(_makes_integers(node) for node in flow.nodes) or bool(flow.operators & _TO_INTEGERS)


def _makes_integers(node: NodeProto) -> bool:
    if node.op_type == "CastLike":
        return True
    kinds = (a.i for a in node.attribute if node.op_type == "Cast" and a.name == "to")
    return any(TensorProto.DataType.Name(kind).startswith(("INT", "UINT")) for kind in kinds)


def computes_integers_alone(flow: Flow) -> bool:
    """Whether integers of a model are added, compared and moved only, and none is a size, an index or a divisor."""
    predictable = (_MOVING | _OF_INTEGERS | _OVER_ELEMENTS) - _NEEDING_SIZES
    if not flow.operators <= predictable or casts_to_integers(flow):
        return False
    shaped = (node for node in flow.nodes if node.op_type in _SHAPED)
    return all(flow.facts.value(name) is not None for node in shaped for name in node.input[1:] if name)


def runs_long_on_large_numbers(flow: Flow) -> bool:
    """Whether time or memory grow with the numbers: a Loop that ends by its condition alone, samples of a region, a Range."""
    if flow.operators & _COSTLY or (flow.operators & _RESIZING and sizes_follow_from_values(flow)):
        return True
    return any(node.op_type == "Loop" and not _is_bounded(flow, node) for node in flow.nodes)


def multiplies_inputs(flow: Flow) -> bool:
    """Whether a model sums products of computed values, like in attention. Large inputs then leave nothing but rounding."""
    if any("Attention" in name for name in flow.operators):
        return True
    products = (node for node in flow.nodes if node.op_type in ("MatMul", "Einsum", "Gemm"))
    return any(
        all(flow.facts.value(name) is None and name not in flow.stored for name in node.input[:2])
        for node in products
    )


def sizes_follow_from_values(flow: Flow) -> bool:
    """Whether a node takes a size that is computed."""
    if flow.operators & _NEEDING_SIZES:
        return True
    shaped = (node for node in flow.nodes if node.op_type in _SIZED)
    return any(flow.facts.value(name) is None for node in shaped for name in node.input[1:] if name)


def _is_bounded(flow: Flow, node: NodeProto) -> bool:
    if not node.input or not node.input[0]:
        return False
    turns = flow.facts.value(node.input[0])
    if turns is None or not turns.size:
        return any(value.name == node.input[0] for value in flow.model.graph.input)
    return int(turns.flat[0]) <= _MOST_TURNS
