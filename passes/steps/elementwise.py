"""Element-wise operators: `consumed_inputs` was removed (opset 6)."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter
from onnx_migrate.rewrite.rewriter import Rewriter


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
