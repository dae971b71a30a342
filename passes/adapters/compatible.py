"""Steps that leave a node unchanged, each with what the changelog of the standard says has changed; tests run them all.

Only for operators without an adapter: the other files declare such steps next to the adapters of their operators.
"""

from __future__ import annotations

from onnx_migrate.engine.steps.registry import compatible

MORE_TYPES = {
    "Acos": (22,),
    "Acosh": (22,),
    "Asin": (22,),
    "Asinh": (22,),
    "Atan": (22,),
    "Atanh": (22,),
    "Bernoulli": (22,),
    "Celu": (28,),
    "Compress": (28,),
    "Constant": (9, 13, 19, 21, 23, 24, 25),
    "ConstantOfShape": (20, 21, 23, 24, 25),
    "Cos": (22,),
    "Cosh": (22,),
    "CumSum": (14,),
    "DepthToSpace": (13,),
    "Det": (22,),
    "Einsum": (28,),
    "EyeLike": (22,),
    "Flatten": (9, 13, 21, 23, 24, 25),
    "GatherElements": (13,),
    "GatherND": (13,),
    "HardSwish": (22,),
    "Identity": (13, 19, 21, 23, 24, 25),
    "IsInf": (20,),
    "IsNaN": (13, 20),
    "MatMul": (9, 13),
    "Mish": (22,),
    "Multinomial": (22,),
    "NegativeLogLikelihoodLoss": (22,),
    "NonZero": (13,),
    "RandomNormal": (22,),
    "RandomNormalLike": (22,),
    "RandomUniform": (22,),
    "RandomUniformLike": (22,),
    "ReverseSequence": (28,),
    "Round": (22,),
    "Shape": (13, 19, 21, 23, 24, 25),
    "Sign": (13,),
    "Sin": (22,),
    "Sinh": (22,),
    "Size": (13, 19, 21, 23, 24, 25),
    "SoftmaxCrossEntropyLoss": (13,),
    "Softplus": (22,),
    "Softsign": (22,),
    "SpaceToDepth": (13,),
    "Tan": (22,),
    "Transpose": (13, 23, 24),
    "Unique": (28,),
    "Where": (16,),
}

for _operator, _versions in MORE_TYPES.items():
    compatible(_operator, *_versions, reason="more types are allowed")

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
