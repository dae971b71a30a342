"""Weights that a model reads by a Cast to another float type: onnxsim would fold the Cast, and the file would grow.

y = MatMul(x, v), v = Cast<to = float>(w: float16[512,512])        onnxsim sees y = MatMul(x, v), and v as an input
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from math import prod

import onnx
from onnx import TensorProto, helper

from onnx_migrate.model.graphs import names_read, output_names
from onnx_migrate.model.model import Model
from onnx_migrate.standard.schema import is_onnx

from .hidden_weights import keep_only
from .values_needed import main_constants

__all__ = ["hide_casts", "put_casts_back"]

_SMALL = 256
"""Elements up to which a weight may be folded into a wider type: its Cast costs about as many bytes as it saves."""

_BYTES: dict[int, int] = {
    TensorProto.FLOAT16: 2, TensorProto.BFLOAT16: 2, TensorProto.FLOAT: 4, TensorProto.DOUBLE: 8,
}  # fmt: skip
"""The bytes of a number of each type."""


def hide_casts(model: Model) -> Model:
    """Return a copy in which Casts are inputs whose folding makes the file larger; `model` itself if it has none."""
    hidden = _casts(model.proto.graph)
    if not hidden:
        return model
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    sizes = {name: dims for name, _, dims in _constant_types(graph)}
    for name, node in hidden.items():
        graph.input.append(helper.make_tensor_value_info(name, node.attribute[0].i, sizes[node.input[0]]))
    # The hidden value is an input now.
    for field in ("value_info", "output"):
        keep_only(graph, field, (value for value in getattr(graph, field) if value.name not in hidden))
    keep_only(graph, "node", (node for node in graph.node if not _makes(node, hidden)))
    # A weight that only the Cast reads would be folded in vain.
    unread = {node.input[0] for node in hidden.values()} - _read(graph)
    keep_only(graph, "initializer", (tensor for tensor in graph.initializer if tensor.name not in unread))
    keep_only(graph, "node", (node for node in graph.node if not _makes(node, unread)))
    return replace(model, proto=proto)


def put_casts_back(graph: onnx.GraphProto, before: onnx.GraphProto) -> None:
    """Write the Casts that `hide_casts` took out of `before`, and their weights, in place, as far as something reads them."""
    read = _read(graph) | {*output_names(before)}
    casts = {name: node for name, node in _casts(before).items() if name in read}
    weights = {node.input[0] for node in casts.values()}
    own = {tensor.name: tensor for tensor in graph.initializer}
    old = [
        # Weights keep their order.
        own.pop(tensor.name, tensor)
        for tensor in before.initializer
        if tensor.name in own or tensor.name in weights
    ]
    keep_only(graph, "initializer", (*old, *(tensor for tensor in graph.initializer if tensor.name in own)))
    computed_names = {name for node in graph.node for name in node.output}
    constants = [
        node for node in before.node if _makes(node, weights) and node.output[0] not in computed_names
    ]
    keep_only(graph, "node", (*constants, *casts.values(), *graph.node))


def _casts(graph: onnx.GraphProto) -> dict[str, onnx.NodeProto]:
    """Return the Casts of larger weights of a main graph by what they make, unless all outputs are such Casts.

    A fold of these makes the file larger: the Cast leads to a wider type, or something else reads the weight too.
    """
    kinds = {
        name: kind for name, kind, dims in _constant_types(graph) if prod(dims) > _SMALL and kind in _BYTES
    }
    casts = [node for node in graph.node if node.op_type == "Cast" and is_onnx(node.domain)]
    casts = [node for node in casts if node.input[0] in kinds and node.attribute[0].i in _BYTES]
    if not casts:
        return {}
    readings = Counter(name for node in graph.node for name in names_read(node))
    readings.update(output_names(graph))
    larger = {
        node.output[0]: node
        for node in casts
        # The weight would be stored twice.
        if readings[node.input[0]] > 1 or _BYTES[node.attribute[0].i] > _BYTES[kinds[node.input[0]]]
    }
    # onnxsim needs an output.
    return larger if any(name not in larger for name in output_names(graph)) else {}


def _constant_types(graph: onnx.GraphProto) -> Iterable[tuple[str, int, tuple[int, ...]]]:
    """Yield name, element type and shape of each initializer that nobody can override, and of each Constant."""
    listed = {value.name for value in graph.input}
    for name, tensor in main_constants(graph):
        if name not in listed:
            yield name, tensor.data_type, tuple(tensor.dims)


def _makes(node: onnx.NodeProto, names: Iterable[str]) -> bool:
    return bool(node.output) and node.output[0] in names


def _read(graph: onnx.GraphProto) -> set[str]:
    return {name for node in graph.node for name in names_read(node)} | {*output_names(graph)}
