"""Outputs whose last operators hide small differences in what they read, or bound the scale of the output."""

from __future__ import annotations

import onnx

from onnx_migrate.model.graphs import producers

__all__ = ["bounded_outputs", "masked_outputs"]

_BOUNDED = frozenset({"Sigmoid", "HardSigmoid", "Softmax", "Tanh"})
"""Operators whose outputs lie in [-1, 1], and which are flat where they are saturated."""

_DISCRETE = frozenset(
    {
        "ArgMax",
        "ArgMin",
        "TopK",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Round",
        "Sign",
        "Floor",
        "Ceil",
    }
)
"""Operators whose output changes in steps."""

_TRANSPARENT = frozenset({"Identity", "Cast", "Squeeze", "Unsqueeze", "Not"})
"""Operators that hide nothing: the traversal upstream goes past them."""


def masked_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return each output that bounded or discrete operators produce, with the computed value before these.

    A difference that a saturated Sigmoid, an index or a comparison hides is visible in that value.
    """
    producer_of = producers(model.graph)
    inputs = {value.name for value in model.graph.input}
    found: dict[str, str] = {}
    for output in model.graph.output:
        name, masked = output.name, False
        while (node := producer_of.get(name)) is not None and node.domain in ("", "ai.onnx"):
            if node.op_type not in _BOUNDED | _DISCRETE | _TRANSPARENT:
                break
            masked |= node.op_type not in _TRANSPARENT
            name = node.input[0]
        if masked and name in producer_of and name not in inputs:
            found[output.name] = name
    return found


def bounded_outputs(model: onnx.ModelProto) -> set[str]:
    """Return the outputs that lie in [-1, 1] by their last operator: runtimes round them relative to 1."""
    last = {output: node.op_type for node in model.graph.node for output in node.output}
    return {output.name for output in model.graph.output if last.get(output.name) in _BOUNDED}
