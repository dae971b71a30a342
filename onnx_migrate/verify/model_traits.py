"""What a verifier must know of a model before it trusts a comparison: what is random, and what depends on what."""

from __future__ import annotations

import onnx
from onnx import NodeProto

from onnx_migrate.model.graphs import all_nodes, names_read, nested_nodes

__all__ = [
    "contains_resize",
    "dependents",
    "is_random",
    "is_random_node",
    "random_outputs",
]

_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)


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
    functions = {
        (f.domain, f.name): operator
        for f in model.functions
        for operator in [next((n.op_type for n in nested_nodes(f.node) if is_random_node(n)), "")]
        if operator
    }
    producers: dict[int, str] = {}
    for index, node in enumerate(model.graph.node):
        for inner in nested_nodes([node]):
            if is_random_node(inner) or (inner.domain, inner.op_type) in functions:
                producers[index] = functions.get((inner.domain, inner.op_type), inner.op_type)
    if not producers:
        return {}
    reached = dependents(model, set(), frozenset(producers))
    operators = ", ".join(sorted(set(producers.values())))
    return {output.name: operators for output in model.graph.output if output.name in reached}


def is_random(model: onnx.ModelProto) -> bool:
    """Whether any node of the model, its sub-graphs and functions is a random operator."""
    return any(map(is_random_node, all_nodes(model)))


def contains_resize(model: onnx.ModelProto) -> bool:
    """Whether the model contains Upsample or Resize, which onnx.reference computes wrongly."""
    return any(node.op_type in ("Upsample", "Resize") for node in all_nodes(model))


def is_random_node(node: NodeProto) -> bool:
    """Whether a node is a random operator; a Dropout is one in training mode."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Dropout":
        return len(node.input) > 2 and node.input[2] != ""
    return node.op_type in _RANDOM
