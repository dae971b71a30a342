"""Steps that leave a node unchanged: the versions differ in their types alone, or only in the words of the standard.

Tests run every claim. Other claims stand in the files of their families, beside the steps that rewrite.
"""

from __future__ import annotations

from onnx_migrate.engine.steps.registration import types_only
from onnx_migrate.plugins import LostTypes, compatible, unchanged

# Move or compare values, round or negate them, or compute integers modulo a power of two: a wider type gives the same bits.
types_only(
    "Abs Ceil Concat DepthToSpace Expand Floor Gather GatherElements GatherND Greater Less Max Min Neg NonZero Relu "
    "ScatterElements ScatterND Sign SpaceToDepth Tile",
    13, lost=LostTypes.EXACT,
)  # fmt: skip
types_only("Equal", 13, 19, lost=LostTypes.EXACT)
types_only("Identity Shape Size", 13, 19, 21, 23, 24, 25, lost=LostTypes.EXACT)
types_only("IsNaN", 13, 20, lost=LostTypes.EXACT)
types_only("Flatten Pad", 13, 21, 23, 24, 25, lost=LostTypes.EXACT)
types_only("Reshape", 13, 19, 21, 23, 24, 25, lost=LostTypes.EXACT)
types_only("Squeeze Unsqueeze", 21, 23, 24, 25, lost=LostTypes.EXACT)
types_only("Transpose", 13, 23, 24, lost=LostTypes.EXACT)
types_only("Add Div Mul Sub", 14, lost=LostTypes.EXACT)
types_only("GreaterOrEqual LessOrEqual Where", 16, lost=LostTypes.EXACT)
types_only("IsInf", 20, lost=LostTypes.EXACT)
types_only("MaxPool", 12, lost=LostTypes.EXACT)
types_only("GlobalMaxPool MaxUnpool Round", 22, lost=LostTypes.EXACT)
types_only("TopK", 24, lost=LostTypes.EXACT)
types_only("Compress OneHot ReverseSequence Unique", 28, lost=LostTypes.EXACT)

# The standard leaves the inner precision open: float16 and bfloat16 compute in float32.
types_only(
    "Add Div Exp Gemm LRN Log MatMul Mean Mul Reciprocal Sigmoid SoftmaxCrossEntropyLoss Sqrt Sub Sum Tanh",
    13, lost=LostTypes.ROUNDED,
)  # fmt: skip
types_only("Pow", 13, 15, lost=LostTypes.ROUNDED)
types_only("Dropout", 13, 22, lost=LostTypes.ROUNDED)
types_only("CumSum", 14, lost=LostTypes.ROUNDED)
types_only("LeakyRelu PRelu", 16, lost=LostTypes.ROUNDED)
types_only(
    "Acos Acosh Asin Asinh Atan Atanh Conv ConvTranspose Cos Cosh DeformConv Det Elu GRU GlobalAveragePool GlobalLpPool "
    "GridSample HardSigmoid HardSwish InstanceNormalization LSTM LpNormalization LpPool MaxRoiPool Mish "
    "NegativeLogLikelihoodLoss RNN RoiAlign Selu Sin Sinh Softplus Softsign Tan ThresholdedRelu",
    22, lost=LostTypes.ROUNDED,
)  # fmt: skip
types_only("Einsum", 28, lost=LostTypes.ROUNDED)

# A Cast around these operators does not help. An attribute names the type, or a sub-graph or a sequence has it, or a wider
# type would not hold the results.
types_only("Gemm MatMul PRelu", 9, lost=LostTypes.REFUSED)
types_only("If Loop", 13, 16, 19, 21, 23, 24, 25, lost=LostTypes.REFUSED)
types_only("Constant", 13, 19, 21, 23, 24, 25, lost=LostTypes.REFUSED)
types_only("Scan", 16, 19, 21, 23, 24, 25, lost=LostTypes.REFUSED)
types_only("ConstantOfShape", 20, 21, 23, 24, 25, lost=LostTypes.REFUSED)
types_only("CastLike", 21, 23, 25, lost=LostTypes.REFUSED)
types_only("Cast", 21, 23, 25, 28, lost=LostTypes.REFUSED)
types_only(
    "Bernoulli EyeLike Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    22, lost=LostTypes.REFUSED,
)  # fmt: skip
types_only("SplitToSequence", 24, lost=LostTypes.REFUSED)
types_only("Optional OptionalGetElement OptionalHasElement", 28, lost=LostTypes.REFUSED)

# More types are allowed, and the step down is another one.
for _operators, _version in (
    ("Constant Flatten Greater Less", 9),
    ("Equal", 11),
    ("Clip Max Min", 12),
    ("Relu", 14),
    ("Celu", 28),
):
    compatible(_operators, _version, reason="more types are allowed")

# The version before takes fewer types, and the step up is another one, or stands with its family.
for _lost, _operators, _versions in (
    (LostTypes.EXACT, "ReduceMax ReduceMin", (12, 13, 20)),
    (LostTypes.EXACT, "ArgMax ArgMin Clip Slice", (13,)),
    (LostTypes.EXACT, "Transpose", (21, 25)),
    (LostTypes.ROUNDED, "Erf MeanVarianceNormalization Mod ReduceL1 ReduceL2 ReduceLogSum", (13,)),
    (LostTypes.ROUNDED, "ReduceLogSumExp ReduceMean ReduceProd ReduceSumSquare", (13,)),
    (LostTypes.REFUSED, "Cast", (13,)),
):
    unchanged(_operators, *_versions, reason="the version before takes fewer element types", types=_lost)

compatible(
    "Max Mean Min Sum", 8, reason="inputs of different shapes are broadcast; before, all had one shape"
)
compatible("Pow", 12, reason="base and exponent may have different types; the result has the base's")
compatible("Gemm", 11, reason="C may be omitted")


compatible("BitShift", 28, reason="signed types are allowed, and shifts by the width or more are defined")
compatible("Compress", 11, reason="a negative axis is allowed")
compatible("Constant", 11, reason="sparse_value may be given in place of value")
compatible(
    "Constant", 12, reason="value_int, value_floats and similar attributes may be given in place of value"
)
compatible("DepthToSpace", 11, reason="mode was added; its default DCR is the order of older versions")
compatible(
    "DepthToSpace", 28, reason="the operator became a function of other operators, which computes the same"
)
compatible("Flatten", 11, reason="a negative axis is allowed")
compatible("GatherND", 12, reason="batch_dims was added; its default 0 is the behaviour of older versions")
compatible("Identity", 14, reason="sequences are allowed")
compatible("Identity", 16, reason="optional values are allowed")
compatible("Mod", 13, reason="bfloat16 is allowed, and infinities and NaN are defined for fmod=1")
compatible("Mod", 28, reason="floats are allowed for fmod=0; integers and fmod=1 compute the same")
compatible("NegativeLogLikelihoodLoss", 13, reason="only the description changed")
compatible("Shape", 15, reason="start and end were added; by default the whole shape is returned")
compatible("SpaceToDepth", 28, reason="mode was added; its default DCR is the order of older versions")
compatible("Transpose", 21, reason="more types are allowed, and the length of perm is stated")
compatible("Transpose", 25, reason="more types are allowed, and the range of perm is stated")

unchanged("NegativeLogLikelihoodLoss", 13, reason="only the standard's text changed", types=LostTypes.ROUNDED)
unchanged(
    "AveragePool Conv ConvTranspose LpPool MaxPool MaxUnpool NonMaxSuppression",
    11,
    reason="only the standard's text changed",
)
unchanged("DepthToSpace", 28, reason="version 28 is a function of the same meaning")
unchanged("ReduceLogSum", 28, reason="the version before takes more element types")
unchanged("ReduceLogSumExp", 28, reason="the version before takes more element types")
unchanged(
    "BatchNormalization", 9, reason="the version before has the attribute spatial, which is 1 by default"
)
unchanged("Cast", 9, reason="the version before does not support strings")
