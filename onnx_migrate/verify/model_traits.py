"""What a verifier must know of a model before it trusts a comparison: what depends on what, and what is random.

Random operators are replaced in two models by fixed ones, so that everything else in them can be compared: each by the same
function of its inputs and attributes in both, whose result has the type, shape and range of the random one. Only operators
that every opset has are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_migrate.facts.shape_arithmetic import attributes_of
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
from onnx_migrate.verify.evaluators import Runnable

__all__ = [
    "dependents",
    "is_random",
    "is_random_node",
    "miscomputed_in_reference",
    "needed_nodes",
    "random_outputs",
    "with_fixed_numbers",
    "without_draws",
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


def needed_nodes(nodes: Sequence[NodeProto], values: Iterable[str]) -> list[NodeProto]:
    """Return the nodes of a body that compute these values, in their order."""
    wanted, kept = set(values), []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    return kept[::-1]


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
            # Of their last axis alone all versions make the same.
            last_axis = node.op_type in _NORMALISING and attributes_of(node).get("axis") == -1
            if opset < first and not last_axis:
                return node.op_type
            # It stacks what each turn gives with numpy.vstack, which is right for vectors alone.
            if is_onnx(node.domain) and node.op_type == "Loop" and len(node.output) > len(node.input) - 2:
                return node.op_type
    return ""


def is_random_node(node: NodeProto) -> bool:
    """Whether a node is a random operator; a Dropout is one in training mode."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Dropout":
        return len(node.input) > 2 and node.input[2] != ""
    return node.op_type in _RANDOM


def without_draws(*runnables: Runnable) -> tuple[Runnable, ...]:
    """Return models with fixed numbers in place of random ones if the first of them draws any."""
    return tuple(map(with_fixed_numbers, runnables)) if is_random(runnables[0].model) else runnables


def with_fixed_numbers(runnable: Runnable) -> Runnable:
    """Return the model with every random operator replaced, in sub-graphs and functions too."""
    model = runnable.proto()
    for located in bodies(model):
        nodes = located.body.node
        if not any(map(is_random_node, nodes)):
            continue
        replaced = [new for node in nodes for new in (_fixed(node) if is_random_node(node) else [node])]
        del nodes[:]
        nodes.extend(replaced)
    return runnable.with_structure(model)


def _fixed(node: NodeProto) -> Iterator[NodeProto]:
    """Return nodes that write the same outputs; the last has the name of the random one."""
    *before, last = _BY_OPERATOR[node.op_type](node, attributes_of(node))
    last.name = node.name
    yield from (*before, last)


Attributes = Mapping[str, Any]


def _dropout(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """Not in training mode it is the identity, and its mask is true throughout."""
    inference = NodeProto.FromString(node.SerializeToString())
    del inference.input[2:]
    return [inference]


def _drawn(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """RandomNormal and RandomUniform: a constant, drawn with the node's mean and scale, or low and high."""
    rng = np.random.default_rng(0)
    shape = attributes.get("shape", [])
    if node.op_type == "RandomNormal":
        mean, scale = attributes.get("mean", 0.0), attributes.get("scale", 1.0)
        values = mean + scale * rng.standard_normal(shape)
    else:
        low, high = attributes.get("low", 0.0), attributes.get("high", 1.0)
        values = low + (high - low) * rng.random(shape)
    dtype = helper.tensor_dtype_to_np_dtype(attributes.get("dtype", TensorProto.FLOAT))
    tensor = numpy_helper.from_array(np.asarray(values).astype(dtype))
    return [helper.make_node("Constant", [], [node.output[0]], value=tensor)]


def _like(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """RandomNormalLike and RandomUniformLike: the cosine of the input, which is finite and nowhere the same."""
    source, output = node.input[0], node.output[0]
    dtype = attributes.get("dtype", 0)
    if not dtype:
        return [helper.make_node("Cos", [source], [output])]
    number, cosine = f"{output}.fixed.0", f"{output}.fixed.1"
    return [
        helper.make_node("Cast", [source], [number], to=TensorProto.FLOAT),
        helper.make_node("Cos", [number], [cosine]),
        helper.make_node("Cast", [cosine], [output], to=dtype),
    ]


def _bernoulli(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """Whether the fixed number of RandomUniformLike is less than the probability, as below opset 15 it is written."""
    source, output = node.input[0], node.output[0]
    drawn, less = f"{output}.fixed.0", f"{output}.fixed.1"
    dtype = attributes.get("dtype", 0)
    return [
        helper.make_node("Cos", [source], [drawn]),
        helper.make_node("Less", [drawn, source], [less]),
        helper.make_node("Cast", [less], [output], to=dtype) if dtype
        else helper.make_node("CastLike", [less, source], [output]),
    ]  # fmt: skip


def _multinomial(node: NodeProto, attributes: Attributes) -> list[NodeProto]:
    """The likeliest class, in place of every sample."""
    output = node.output[0]
    likeliest, samples = f"{output}.fixed.0", f"{output}.fixed.1"
    return [
        helper.make_node("ArgMax", [node.input[0]], [likeliest], axis=1, keepdims=1),
        helper.make_node("Concat", [likeliest] * attributes.get("sample_size", 1), [samples], axis=1),
        helper.make_node("Cast", [samples], [output], to=attributes.get("dtype", TensorProto.INT32)),
    ]


_BY_OPERATOR: Mapping[str, Callable[[NodeProto, Attributes], list[NodeProto]]] = {
    "Dropout": _dropout,
    "RandomNormal": _drawn,
    "RandomUniform": _drawn,
    "RandomNormalLike": _like,
    "RandomUniformLike": _like,
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
}
