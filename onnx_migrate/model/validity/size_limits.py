"""Limits for the number of nodes, inputs and other parts of a model, before and after inlining its local functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from itertools import chain

import onnx

from onnx_migrate.errors import CannotMigrate, LoadError, Where
from onnx_migrate.model.graphs import (
    FunctionKey,
    bodies,
    called,
    function_key,
    function_nodes,
    function_path,
    inputs_of_each,
    nested_nodes,
    node_label,
    outputs_of_each,
)
from onnx_migrate.model.validity.functions import callees_first

__all__ = ["MOST_LEVELS", "MOST_NODES", "WHERE_FROM", "check_growth", "require_size"]

WHERE_FROM = "no exporter writes such a model: look at where the file is from"
"""The hint for a file with so many parts that somebody must have made it on purpose."""

_MOST_OF_MODEL = {"functions": 50_000, "opset_import": 1_000, "metadata_props": 500_000}
_MOST_OF_GRAPH = {"node": 2_000_000, "initializer": 2_000_000, "input": 100_000, "output": 100_000}
"""The most entries of each kind; every pass and runtime visits all of them, which takes minutes at these numbers."""

_MOST_OF_NODE = 100_000
"""How many inputs, or outputs, one node may have."""

_PLURALS = {
    "opset_import": "opset imports",
    "metadata_props": "entries of metadata",
    "node": "nodes",
    "initializer": "initializers",
    "input": "inputs",
    "output": "outputs",
}


def require_size(proto: onnx.ModelProto, name: str) -> None:
    """Raise LoadError, code `too-large`, if a model has more parts of a kind than any real model has."""
    for owner, limits in ((proto, _MOST_OF_MODEL), (proto.graph, _MOST_OF_GRAPH)):
        for field, most in limits.items():
            count = len(getattr(owner, field))
            if count > most:
                raise LoadError(
                    f"{name}: it has {count:,} {_PLURALS.get(field, field)}, and at most {most:,} are handled",
                    code="too-large",
                    hint=WHERE_FROM,
                )
    # Each input or output takes two bytes or more, and a node has the bytes of its sub-graphs too.
    if any(node.ByteSize() > 2 * _MOST_OF_NODE for node in _own_nodes(proto)):
        _require_size_of_nodes(proto, name)


def _own_nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    return chain(proto.graph.node, *(function.node for function in proto.functions))


def _require_size_of_nodes(proto: onnx.ModelProto, name: str) -> None:
    for located in bodies(proto):
        nodes = located.body.node
        lists = chain(inputs_of_each(nodes), outputs_of_each(nodes))
        if max(map(len, lists), default=0) <= _MOST_OF_NODE:
            continue
        for node in nodes:
            count = max(len(node.input), len(node.output))
            if count > _MOST_OF_NODE:
                raise LoadError(
                    f"{name}: the node {node_label(node)!r} ({node.op_type}) has {count:,} inputs or outputs, and at most"
                    f" {_MOST_OF_NODE:,} are handled",
                    code="too-large",
                    hint=WHERE_FROM,
                )


MOST_NODES = 2_000_000
"""The most nodes after inlining all functions. Shape inference and runtimes visit each: some minutes at this number."""

MOST_LEVELS = 100
"""Levels of functions that call functions: onnx's own limit ("Function call chain depth exceeds limit", onnx 1.22)."""

_BEYOND = 10**12
"""The count at which counting stops; without a limit, the numbers could have as many digits as there are functions."""


def check_growth(proto: onnx.ModelProto) -> None:
    """Raise CannotMigrate, code `too-large`, if the nodes that the main graph calls are too many, or nested too deep.

    Each function is counted once, however often it is called: the cost is linear. Functions must not be recursive.
    """
    # Without functions, nothing grows.
    if not proto.functions:
        return
    functions = {function_key(function): function for function in proto.functions}
    callees = {key: _calls(function_nodes(function), functions.keys()) for key, function in functions.items()}
    nodes: dict[FunctionKey, int] = {}
    levels: dict[FunctionKey, int] = {}
    # The sizes of called functions are known before those of their callers.
    for key in callees_first(callees):
        calls = callees[key]
        own = sum(1 for _ in function_nodes(functions[key]))
        # Exponential growth would give enormous numbers.
        nodes[key] = min(_BEYOND, own + sum(count * nodes[callee] for callee, count in calls.items()))
        levels[key] = 1 + max((levels[callee] for callee in calls), default=0)
    main = _calls(nested_nodes(proto.graph.node), functions.keys())
    total = sum(count * nodes[key] for key, count in main.items())
    deepest = max(main, key=lambda key: levels[key], default=None)
    if deepest is not None and levels[deepest] > MOST_LEVELS:
        raise CannotMigrate(
            f"it begins a chain of {levels[deepest]} functions that call each other, and at most {MOST_LEVELS} are handled",
            code="too-large",
            where=Where(function_path(functions[deepest])),
            hint="inline the functions, or export the model with fewer",
        )
    if total > MOST_NODES:
        largest = max(main, key=lambda key: nodes[key])
        count = f"{total:,}" if total < _BEYOND else f"more than {_BEYOND:,}"
        raise CannotMigrate(
            f"its calls stand for {count} nodes, as functions call each other again and again, and at most {MOST_NODES:,}"
            " are handled",
            code="too-large",
            where=Where(function_path(functions[largest])),
            hint=WHERE_FROM,
        )


def _calls(nodes: Iterable[onnx.NodeProto], functions: Set[FunctionKey]) -> Counter[FunctionKey]:
    """Return how often these nodes call each function."""
    call_counts = Counter(map(called, nodes))
    return Counter({key: call_counts[key] for key in call_counts.keys() & functions})
