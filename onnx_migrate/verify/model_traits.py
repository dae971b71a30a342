"""What a verifier must know of a model before it trusts a comparison: what is random, and what depends on what."""

from __future__ import annotations

import onnx
from onnx import NodeProto

from onnx_migrate.model.graphs import (
    FunctionKey,
    all_nodes,
    bodies,
    called,
    function_key,
    names_read,
    nested_nodes,
)
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "dependents",
    "is_random",
    "is_random_node",
    "miscomputed_in_reference",
    "random_outputs",
]

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)

_NORMALISING = ("Softmax", "LogSoftmax", "Hardmax")

_SINCE = {
    "Upsample": 10**9, "Resize": 10**9, **dict.fromkeys(_NORMALISING, 13), "RoiAlign": 16, "Scan": 9, "Concat": 4, "Tile": 6,
    "BatchNormalization": 14, "Selu": 6,
}  # fmt: skip
"""The opset from which on onnx.reference computes an operator right; it never does for the first two."""


def dependents(
    model: onnx.ModelProto, sources: set[str], producers: frozenset[int] = frozenset()
) -> set[str]:
    """Return the main graph's values that depend on `sources` or on the nodes at the positions `producers`.

    `sources` are included. Relies on ONNX's topological order of nodes.
    """
    reached = set(sources)
    for index, node in enumerate(model.graph.node):
        if index in producers or not reached.isdisjoint(names_read(node)):
            reached.update(name for name in node.output if name)
    return reached


def random_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """Return the graph outputs that depend on a random operator, each with those operators, separated by commas."""
    functions = _random_functions(model)
    producers: dict[int, str] = {}
    for index, node in enumerate(model.graph.node):
        for inner in nested_nodes([node]):
            if is_random_node(inner) or (functions and called(inner) in functions):
                producers[index] = functions.get(called(inner), inner.op_type)
    if not producers:
        return {}
    reached = dependents(model, set(), frozenset(producers))
    operators = ", ".join(sorted(set(producers.values())))
    return {output.name: operators for output in model.graph.output if output.name in reached}


def _random_functions(model: onnx.ModelProto) -> dict[FunctionKey, str]:
    """Return the local functions with a random operator, in them or in one that they call, each with that operator."""
    found: dict[FunctionKey, str] = {}
    callers: dict[FunctionKey, list[FunctionKey]] = {}
    for function in model.functions:
        key = function_key(function)
        for node in nested_nodes(function.node):
            if is_random_node(node):
                found.setdefault(key, node.op_type)
            else:
                callers.setdefault(called(node), []).append(key)
    waiting = list(found)
    while waiting:
        callee = waiting.pop()
        for caller in callers.get(callee, ()):
            if caller not in found:
                found[caller] = found[callee]
                waiting.append(caller)
    return found


def is_random(model: onnx.ModelProto) -> bool:
    """Whether any node of the model, its sub-graphs and functions is a random operator."""
    return any(map(is_random_node, all_nodes(model)))


def miscomputed_in_reference(model: onnx.ModelProto) -> str:
    """Return the first operator of the model that onnx.reference computes otherwise than its version says; "" if none.

    Measured with onnx 1.16 to 1.23: one class stands for all versions of each of these.
    """
    for located in bodies(model):
        opset = onnx_opset(located.owner.opset_import, ir_version=model.ir_version) or 0
        for node in located.body.node:
            first = _SINCE.get(node.op_type, 0) if is_onnx(node.domain) else 0
            if opset < first and not (node.op_type in _NORMALISING and _last_axis(node)):
                return node.op_type
            # It stacks what each turn gives with numpy.vstack, which is right for vectors alone.
            if is_onnx(node.domain) and node.op_type == "Loop" and len(node.output) > len(node.input) - 2:
                return node.op_type
    return ""


def _last_axis(node: NodeProto) -> bool:
    """Return whether a node normalises its last axis alone, in which all versions agree."""
    return any(attribute.name == "axis" and attribute.i == -1 for attribute in node.attribute)


def is_random_node(node: NodeProto) -> bool:
    """Whether a node is a random operator; a Dropout is one in training mode."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Dropout":
        return len(node.input) > 2 and node.input[2] != ""
    return node.op_type in _RANDOM
