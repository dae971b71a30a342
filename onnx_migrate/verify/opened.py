"""An original that a runtime refuses for what it infers of its shapes, in a form in which nothing is inferred."""

from __future__ import annotations

from onnx_migrate.analysis.shapes import drop_value_info
from onnx_migrate.verify.evaluators import Runnable

__all__ = ["opened"]


def opened(runnable: Runnable) -> Runnable:
    """Return the model with all lengths of its inputs unknown and no shape declared elsewhere.

    It computes the same on the same inputs: kernels take lengths from what they are given. ONNX Runtime from
    1.28 on infers the length of a Resize in double precision and runs it in single; where they disagree, a
    model with fixed lengths may not load.
    """
    model = runnable.proto()
    held = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name not in held and value.type.WhichOneof("value") == "tensor_type":
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
    drop_value_info(model.graph)
    for value in model.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    return runnable.rewritten(model)
