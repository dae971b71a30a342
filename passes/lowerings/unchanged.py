"""Steps that leave a node unchanged: the version before takes fewer element types, or the standard's text changed in words.

What happens to a node whose types the older version does not take is said for each operator, see `LostTypes`.
"""

from __future__ import annotations

from onnx_migrate.engine.steps.lowering_registry import LostTypes, unchanged

MOVED_OR_COMPARED = {
    "Abs": (13,),
    "Add": (14,),
    "ArgMax": (13,),
    "ArgMin": (13,),
    "Ceil": (13,),
    "Clip": (13,),
    "Compress": (28,),
    "Concat": (13,),
    "DepthToSpace": (13,),
    "Div": (14,),
    "Equal": (13, 19),
    "Expand": (13,),
    "Flatten": (13, 21, 23, 24, 25),
    "Floor": (13,),
    "Gather": (13,),
    "GatherElements": (13,),
    "GatherND": (13,),
    "GlobalMaxPool": (22,),
    "Greater": (13,),
    "GreaterOrEqual": (16,),
    "Identity": (13, 19, 21, 23, 24, 25),
    "IsInf": (20,),
    "IsNaN": (13, 20),
    "Less": (13,),
    "LessOrEqual": (16,),
    "Max": (13,),
    "MaxPool": (12,),
    "MaxUnpool": (22,),
    "Min": (13,),
    "Mul": (14,),
    "Neg": (13,),
    "NonZero": (13,),
    "OneHot": (28,),
    "Pad": (13, 21, 23, 24, 25),
    "ReduceMax": (12, 13, 20),
    "ReduceMin": (12, 13, 20),
    "Relu": (13,),
    "Reshape": (13, 19, 21, 23, 24, 25),
    "ReverseSequence": (28,),
    "Round": (22,),
    "ScatterElements": (13,),
    "ScatterND": (13,),
    "Shape": (13, 19, 21, 23, 24, 25),
    "Sign": (13,),
    "Size": (13, 19, 21, 23, 24, 25),
    "Slice": (13,),
    "SpaceToDepth": (13,),
    "Squeeze": (21, 23, 24, 25),
    "Sub": (14,),
    "Tile": (13,),
    "TopK": (24,),
    "Transpose": (13, 21, 23, 24, 25),
    "Unique": (28,),
    "Unsqueeze": (21, 23, 24, 25),
    "Where": (16,),
}
"""Operators that move or compare values, round or negate them, or compute integers modulo a power of two: a wider type
gives the same bits."""

COMPUTED = {
    "Acos": (22,),
    "Acosh": (22,),
    "Add": (13,),
    "Asin": (22,),
    "Asinh": (22,),
    "Atan": (22,),
    "Atanh": (22,),
    "Conv": (22,),
    "ConvTranspose": (22,),
    "Cos": (22,),
    "Cosh": (22,),
    "CumSum": (14,),
    "DeformConv": (22,),
    "Det": (22,),
    "Div": (13,),
    "Dropout": (13,),
    "Einsum": (28,),
    "Elu": (22,),
    "Erf": (13,),
    "Exp": (13,),
    "GRU": (22,),
    "Gemm": (13,),
    "GlobalAveragePool": (22,),
    "GlobalLpPool": (22,),
    "GridSample": (22,),
    "HardSigmoid": (22,),
    "HardSwish": (22,),
    "InstanceNormalization": (22,),
    "LRN": (13,),
    "LSTM": (22,),
    "LeakyRelu": (16,),
    "Log": (13,),
    "LpNormalization": (22,),
    "LpPool": (22,),
    "MatMul": (13,),
    "MaxRoiPool": (22,),
    "Mean": (13,),
    "MeanVarianceNormalization": (13,),
    "Mish": (22,),
    "Mod": (13,),
    "Mul": (13,),
    "NegativeLogLikelihoodLoss": (22,),
    "PRelu": (16,),
    "Pow": (13, 15),
    "RNN": (22,),
    "Reciprocal": (13,),
    "ReduceL1": (13,),
    "ReduceL2": (13,),
    "ReduceLogSum": (13,),
    "ReduceLogSumExp": (13,),
    "ReduceMean": (13,),
    "ReduceProd": (13,),
    "ReduceSumSquare": (13,),
    "RoiAlign": (22,),
    "Selu": (22,),
    "Sigmoid": (13,),
    "Sin": (22,),
    "Sinh": (22,),
    "SoftmaxCrossEntropyLoss": (13,),
    "Softplus": (22,),
    "Softsign": (22,),
    "Sqrt": (13,),
    "Sub": (13,),
    "Sum": (13,),
    "Tan": (22,),
    "Tanh": (13,),
    "ThresholdedRelu": (22,),
}
"""Operators whose inner precision the standard leaves open: float16 and bfloat16 compute in float32."""

TYPED = {
    "Bernoulli": (22,),
    "Cast": (13, 21, 23, 25, 28),
    "CastLike": (21, 23, 25),
    "Constant": (13, 19, 21, 23, 24, 25),
    "ConstantOfShape": (20, 21, 23, 24, 25),
    "EyeLike": (22,),
    "Gemm": (9,),
    "If": (13, 16, 19, 21, 23, 24, 25),
    "Loop": (13, 16, 19, 21, 23, 24, 25),
    "MatMul": (9,),
    "Multinomial": (22,),
    "Optional": (28,),
    "OptionalGetElement": (28,),
    "OptionalHasElement": (28,),
    "PRelu": (9,),
    "RandomNormal": (22,),
    "RandomNormalLike": (22,),
    "RandomUniform": (22,),
    "RandomUniformLike": (22,),
    "Scan": (16, 19, 21, 23, 24, 25),
    "SplitToSequence": (24,),
}
"""Operators that a Cast around them does not serve: an attribute names the type, a sub-graph or a sequence has it, or a
wider type would not hold the results."""

for _table, _types in (
    (MOVED_OR_COMPARED, LostTypes.EXACT),
    (COMPUTED, LostTypes.ROUNDED),
    (TYPED, LostTypes.REFUSED),
):
    for _operator, _versions in _table.items():
        unchanged(_operator, *_versions, reason="the version before takes fewer element types", types=_types)

unchanged("NegativeLogLikelihoodLoss", 13, reason="only the standard's text changed", types=LostTypes.ROUNDED)
for _operator in (
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "LpPool",
    "MaxPool",
    "MaxUnpool",
    "NonMaxSuppression",
):
    unchanged(_operator, 11, reason="only the standard's text changed")
unchanged("Dropout", 22, reason="the version before takes fewer element types", types=LostTypes.ROUNDED)
unchanged("DepthToSpace", 28, reason="version 28 is a function of the same meaning")
unchanged("ReduceLogSum", 28, reason="the version before takes more element types")
unchanged("ReduceLogSumExp", 28, reason="the version before takes more element types")
unchanged(
    "BatchNormalization", 9, reason="the version before has the attribute spatial, which is 1 by default"
)
unchanged("Cast", 9, reason="the version before takes no strings")
