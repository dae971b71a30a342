"""Compares constants that simplification folded with the values of the model itself: in float16, both must be the same.

onnxsim folds with ONNX Runtime's optimiser, which computes a chain of float16 nodes in float32 and rounds once. A constant may so
differ by one float16 number. If a later node divides by a small difference, this moves an output far, on inputs that no feed may
have.
"""

from __future__ import annotations

from math import prod

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.bits import bit_difference
from onnx_migrate.verify.equivalence.inner_values import CutModel
from onnx_migrate.verify.equivalence.value_by_value import stored
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.model_traits import dependents, is_random

__all__ = ["moved_constant"]

_NARROW = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
"""Types with so large distances between numbers that a later node may turn a rounding into a fault."""

_LARGEST = 1 << 26
"""Most elements of all folded constants together; if there are more, the constants are not computed again."""


def moved_constant(unsimplified: Runnable, simplified: Runnable) -> str:
    """Describe the first folded float16 constant that has other bits than the value that it replaces; "" if none has.

    Values of the main graph that no input reaches are compared by name. A constant that ONNX Runtime does not compute counts
    as unchanged: the outputs decide on it.
    """
    folded = _folded(unsimplified.model, simplified.model)
    if not folded or sum(prod(tensor.dims) for tensor in folded.values()) > _LARGEST:
        return ""
    try:
        values = CutModel(unsimplified, {}, list(folded)).run({})
    except EvaluationError:
        return ""
    for name, tensor in folded.items():
        array = onnx.numpy_helper.to_array(simplified.inlined(tensor))
        if values[name].shape == array.shape and (
            difference := bit_difference(name, values[name], array, zeros=False)
        ):
            return f"simplification computes another constant: {difference}"
    return ""


def _folded(unsimplified: onnx.ModelProto, simplified: onnx.ModelProto) -> dict[str, TensorProto]:
    """Return the narrow constants of the simplified model that nodes of the unsimplified one compute, by name."""
    constants = {name: tensor for name, tensor in stored(simplified).items() if tensor.data_type in _NARROW}
    # A folded random number cannot be computed again.
    if not constants or is_random(unsimplified):
        return {}
    inputs = {value.name for value in fed_inputs(unsimplified.graph)}
    computed = {name for node in unsimplified.graph.node for name in node.output}
    not_folded = stored(unsimplified).keys() | dependents(unsimplified, inputs)
    return {name: tensor for name, tensor in constants.items() if name in computed and name not in not_folded}
