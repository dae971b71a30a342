"""Element-wise operators: more types, and `consumed_inputs` was removed (opset 6)."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

MORE_TYPES = {
    "Abs": (13,),
    "Add": (13, 14),
    "Ceil": (13,),
    "Div": (13, 14),
    "Elu": (22,),
    "Equal": (11, 13, 19),
    "Exp": (13,),
    "Floor": (13,),
    "Gemm": (9, 13),
    "Greater": (9, 13),
    "GreaterOrEqual": (16,),
    "HardSigmoid": (22,),
    "InstanceNormalization": (22,),
    "LeakyRelu": (16,),
    "Less": (9, 13),
    "LessOrEqual": (16,),
    "Log": (13,),
    "Max": (12, 13),
    "Mean": (13,),
    "Min": (12, 13),
    "Mul": (13, 14),
    "Neg": (13,),
    "PRelu": (9, 16),
    "Pow": (13, 15),
    "Reciprocal": (13,),
    "Relu": (13, 14),
    "Selu": (22,),
    "Sigmoid": (13,),
    "Sqrt": (13,),
    "Sub": (13, 14),
    "Sum": (13,),
    "Tanh": (13,),
}

for _operator, _versions in MORE_TYPES.items():
    compatible(_operator, *_versions, reason="more types are allowed")
for _operator in ("Max", "Mean", "Min", "Sum"):
    compatible(_operator, 8, reason="inputs of different shapes are broadcast; before, all had one shape")
compatible("Pow", 12, reason="base and exponent may have different types; the result has the base's")
compatible("Gemm", 11, reason="C may be omitted")


@adapter(
    "Abs",
    "Add",
    "Ceil",
    "Clip",
    "Div",
    "Elu",
    "Exp",
    "Floor",
    "HardSigmoid",
    "InstanceNormalization",
    "LeakyRelu",
    "Log",
    "Max",
    "Mean",
    "Min",
    "Mul",
    "Neg",
    "PRelu",
    "Reciprocal",
    "Relu",
    "Sigmoid",
    "Sqrt",
    "Sub",
    "Sum",
    "Tanh",
    to=6,
)
def consumed_inputs_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`consumed_inputs`, a hint that memory may be reused, was removed; it does not change the result.

    Why equal: otherwise the schemas of versions 1 and 6 differ in their descriptions only. The defaults of Elu,
    HardSigmoid and LeakyRelu are the same, and an omitted bound of Clip is the limit of the type in both.
    """
    rw.drop("consumed_inputs")


@adapter("Selu", to=6)
def selu_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`alpha` and `gamma` are set to their old defaults if they were omitted, since the new defaults are more precise."""
    rw.drop("consumed_inputs")
    for name, default in (("alpha", 1.6732), ("gamma", 1.0507)):
        if rw.attribute(name) is None:
            rw.set(name, default)
