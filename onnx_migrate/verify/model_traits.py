"""What a verifier must know of a graph before it believes its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto, TensorProto

from onnx_migrate.model.graphs import all_nodes, initializer_types, names_read, nested_nodes, producers
from onnx_migrate.verify.evaluators import Runnable

__all__ = [
    "blurred",
    "coarsest_eps",
    "dependents",
    "exposing",
    "is_random",
    "nudged",
    "quantized",
    "random_outputs",
    "resizes",
    "squashed",
]

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_SQUASHING = frozenset({"Sigmoid", "HardSigmoid", "Softmax", "Tanh"})
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
_PASSING = frozenset({"Identity", "Cast", "Squeeze", "Unsqueeze", "Not"})
_EPS: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.BFLOAT16: 2.0**-7,
    TensorProto.DOUBLE: 2.0**-52,
}


def dependents(model: onnx.ModelProto, sources: set[str], makers: frozenset[int] = frozenset()) -> set[str]:
    """Return the main graph's values that depend on `sources` or on the nodes at the positions `makers`."""
    reached = set(sources)
    for index, node in enumerate(model.graph.node):  # sorted: ONNX asks for it, and so does the lift
        if index in makers or not reached.isdisjoint(names_read(node)):
            reached.update(name for name in node.output if name)
    return reached


def random_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return the graph outputs that depend on a random operator, with that operator."""
    functions = {
        (f.domain, f.name): operator
        for f in model.functions
        for operator in [next((n.op_type for n in nested_nodes(f.node) if _random(n)), "")]
        if operator
    }
    makers: dict[int, str] = {}
    for index, node in enumerate(model.graph.node):
        for inner in nested_nodes([node]):
            if _random(inner) or (inner.domain, inner.op_type) in functions:
                makers[index] = functions.get((inner.domain, inner.op_type), inner.op_type)
    if not makers:
        return {}
    reached = dependents(model, set(), frozenset(makers))
    operators = ", ".join(sorted(set(makers.values())))
    return {output.name: operators for output in model.graph.output if output.name in reached}


def is_random(model: onnx.ModelProto) -> bool:
    """Whether anything in the model is random."""
    return any(map(_random, all_nodes(model)))


def _random(node: NodeProto) -> bool:
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Dropout":
        return len(node.input) > 2 and node.input[2] != ""
    return node.op_type in _RANDOM


def resizes(model: onnx.ModelProto) -> bool:
    """Whether the model holds what onnx.reference computes wrong."""
    return any(node.op_type in ("Upsample", "Resize") for node in all_nodes(model))


def quantized(model: onnx.ModelProto) -> bool:
    """Whether the model rounds to integers on purpose, so that an ulp may become a quantum."""
    return any(
        "QLinear" in n.op_type or "Quantize" in n.op_type or "Integer" in n.op_type for n in all_nodes(model)
    )


def coarsest_eps(model: onnx.ModelProto) -> float:
    """Return the spacing at 1 of the coarsest float type of inputs, constants and casts; 0 without any."""
    kinds = {dtype for _, dtype, _ in initializer_types(model.graph)}
    kinds.update(value.type.tensor_type.elem_type for value in model.graph.input)
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                kinds.add(attribute.t.data_type)
            elif node.op_type == "Cast" and attribute.name == "to":
                kinds.add(attribute.i)
    return max((_EPS[kind] for kind in kinds if kind in _EPS), default=0.0)


def blurred(model: onnx.ModelProto) -> dict[str, str]:
    """Return the outputs whose last operators hide small differences, each with the value before these.

    A Sigmoid where it is saturated, an index, a comparison: what goes in tells more than what comes out.
    """
    makers = producers(model.graph)
    given = {value.name for value in model.graph.input}
    found: dict[str, str] = {}
    for output in model.graph.output:
        name, hides = output.name, False
        while (node := makers.get(name)) is not None and node.domain in ("", "ai.onnx"):
            if node.op_type not in _SQUASHING | _DISCRETE | _PASSING:
                break
            hides |= node.op_type not in _PASSING
            name = node.input[0]
        if hides and name in makers and name not in given:
            found[output.name] = name
    return found


def squashed(model: onnx.ModelProto) -> set[str]:
    """Return the outputs that lie in [-1, 1] by their last operator: runtimes round them to a part of 1."""
    last = {output: node.op_type for node in model.graph.node for output in node.output}
    return {output.name for output in model.graph.output if last.get(output.name) in _SQUASHING}


def nudged(feed: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the feed with every float moved to a neighbouring one, up or down at random."""
    rng = np.random.default_rng([seed, 1])
    moved = dict(feed)
    for name, value in feed.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            towards = np.where(rng.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
            moved[name] = np.where(value == 0, value, np.nextafter(value, towards))
    return moved


def exposing(runnable: Runnable, names: Iterable[str]) -> Runnable:
    """Return the model with these inner values of the main graph as further outputs."""
    model = runnable.proto()
    present = {output.name for output in model.graph.output}
    for name in dict.fromkeys(names):
        if name not in present:
            model.graph.output.add().name = name
    return runnable.rewritten(model)
