"""Chooses the weights whose values onnxsim is given: those that it computes with, as far as they fit into a limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import PassError
from onnx_migrate.model.graphs import output_names, subgraphs
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensors import tensors
from onnx_migrate.standard.schema import is_onnx

__all__ = ["LEAVE_OUT", "Choice", "constant_tensor", "divide", "main_constants"]

LEAVE_OUT = Advice("leave simplification out with --no-simplify", tried=True)
"""Advice that needs no trial: the passes before the simplifier have worked."""

_SMALL = 1 << 16
"""Weights of up to this many bytes, such as biases, scales and shapes, come before all others."""

_TYPE_ONLY = frozenset({"Shape", "Size"})
"""Operators that onnxsim folds by the type of their input."""

_NEVER_FOLDED = frozenset({"QuantizeLinear", "DequantizeLinear"})
"""onnxsim leaves these unchanged, also if all inputs are constant (IsQDQ in its constant_folding.cpp)."""


@dataclass(frozen=True)
class Choice:
    """The large weights of a main graph, by name: those that stay references, and those among them that a fold uses."""

    hidden: frozenset[str] = frozenset()
    unfolded: tuple[str, ...] = ()
    """The hidden weights whose values onnxsim would have used; they did not fit into the limit."""
    hidden_bytes: int = 0


def constant_tensor(node: onnx.NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant node; None for another node, and for a Constant of another kind."""
    if node.op_type != "Constant" or not is_onnx(node.domain) or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    return attribute.t if attribute.type == AttributeProto.TENSOR else None


def main_constants(graph: onnx.GraphProto) -> Iterable[tuple[str, TensorProto]]:
    """Yield the initializers and the tensors of Constants, each with the name of its value."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        value = constant_tensor(node)
        if value is not None:
            yield node.output[0], value


def divide(model: Model, limit: int, *, fuse: bool = True) -> Choice:
    """Choose the weights that onnxsim gets by type and shape alone. No weight is read.

    Up to `limit` bytes onnxsim gets all of them. If a model is larger, it gets the small ones first. Then it gets those that it
    would fold, or `fuse` with others, in the order of the graph, each as long as it fits. onnxsim always gets a weight inside a
    sub-graph or a function, and one that is an output, since it has no place outside.

    Raises PassError, code `not-simplified`, if those that onnxsim must get exceed the limit.
    """
    graph = model.proto.graph
    outputs = set(output_names(graph))
    large = {
        name: model.weights.payload(tensor).length
        for name, tensor in main_constants(graph)
        if tensor.data_location == TensorProto.EXTERNAL and name not in outputs
    }
    # Weights inside sub-graphs and functions count, too.
    total = sum(
        model.weights.payload(tensor).length
        for tensor in tensors(model.proto)
        if tensor.data_location == TensorProto.EXTERNAL
    )
    if total <= limit:
        return Choice()
    bytes_left = limit - (total - sum(large.values()))
    if bytes_left < 0:
        raise PassError(
            f"{limit - bytes_left:,} bytes of weights are in sub-graphs, in functions or outputs, and onnxsim is given at most"
            f" {limit:,}: it needs five times their memory",
            code="not-simplified",
            hint=(LEAVE_OUT, Advice("move the weights to the main graph")),
        )
    wanted = _folded(graph, large, fuse=fuse)
    small = sorted((name for name in large if large[name] <= _SMALL), key=lambda name: large[name])
    shown: set[str] = set()
    for name in dict.fromkeys([*small, *wanted]):
        if large[name] <= bytes_left:
            shown.add(name)
            bytes_left -= large[name]
    hidden = large.keys() - shown
    return Choice(
        frozenset(hidden),
        tuple(name for name in wanted if name in hidden),
        sum(large[name] for name in hidden),
    )


def _folded(graph: onnx.GraphProto, large: Mapping[str, int], *, fuse: bool) -> list[str]:
    """Return the large weights with whose values onnxsim computes, in the order in which nodes read them.

    onnxsim computes nodes whose inputs are all constants. With `fuse` it also scales the weights of a convolution by a
    BatchNormalization after it. It does the same with a Mul by a constant before or after it (onnxsim/passes:
    fuse_bn_into_conv, fuse_mul_into_conv, fuse_preceding_mul_into_conv).
    """
    nothing: frozenset[str] = frozenset()
    roots: dict[str, frozenset[str]] = {
        tensor.name: frozenset({tensor.name}) & large.keys() for tensor in graph.initializer
    }
    """The values that are constant, and the large weights that each is computed from."""
    wanted: dict[str, None] = {}
    makers: dict[str, onnx.NodeProto] = {}
    for node in graph.node:
        makers.update(dict.fromkeys(filter(None, node.output), node))
        if not is_onnx(node.domain) or node.op_type in _NEVER_FOLDED or any(subgraphs(node)):
            continue
        read = [name for name in node.input if name]
        if node.op_type == "Constant":
            roots[node.output[0]] = frozenset({node.output[0]}) & large.keys()
        elif read and all(name in roots for name in read):
            # Shape and Size read no elements, so the values of the weight are not needed.
            used = nothing if node.op_type in _TYPE_ONLY else nothing.union(*map(roots.__getitem__, read))
            wanted.update(dict.fromkeys(sorted(used)))
            roots.update(dict.fromkeys(filter(None, node.output), used))
        elif fuse and (weight := _scaled(node, roots, makers)) is not None:
            wanted.update(dict.fromkeys(sorted(roots[weight])))
    return list(wanted)


def _scaled(
    node: onnx.NodeProto, roots: Mapping[str, object], makers: Mapping[str, onnx.NodeProto]
) -> str | None:
    """Return the constant weight of a convolution that `node` scales, or the weight that the input of `node` scales."""
    # A BatchNormalization in training has other inputs.
    if node.op_type == "BatchNormalization" and len(node.input) == 5:
        constants, others = list(node.input[1:]), [node.input[0]]
    elif node.op_type == "Mul" and len(node.input) == 2:
        constants = [name for name in node.input if name in roots]
        others = [name for name in node.input if name not in roots]
    elif node.op_type == "Conv" and len(node.input) > 1 and node.input[1] in roots:
        before = makers.get(node.input[0])
        is_scaled = (
            before is not None and before.op_type == "Mul" and any(name in roots for name in before.input)
        )
        return node.input[1] if is_scaled else None
    else:
        return None
    # A product of two computed values scales no weight.
    before = makers.get(others[0]) if len(others) == 1 else None
    if before is None or before.op_type not in ("Conv", "ConvTranspose") or len(before.input) < 2:
        return None
    return before.input[1] if before.input[1] in roots and all(name in roots for name in constants) else None
