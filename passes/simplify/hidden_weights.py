"""Takes weights out of a model, so that onnxsim sees only their type and shape, and puts them back afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Any

import onnx
from onnx import TensorProto, helper

from onnx_migrate.model.graphs import names_read
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import Payload
from onnx_migrate.model.tensors import tensors

from .values_needed import constant_tensor, main_constants

__all__ = ["hide", "keep_only", "restore", "share_payloads"]

_INLINE_AT_MOST = 1 << 25
"""Bytes of new weights that become part of the structure. With more, they are references to the simplifier's file, and
verification copies the model to a folder where the runtime finds all of them."""

_LONG = 1 << 13
"""Elements of a vector that is no shape."""


def hide(model: Model, names: Set[str]) -> Model:
    """Return a copy in which these initializers and Constants of the main graph are inputs instead."""
    if not names:
        return model
    proto = onnx.ModelProto()
    # The model itself keeps its weights.
    proto.CopyFrom(model.proto)
    graph = proto.graph
    for name, tensor in main_constants(graph):
        if name in names:
            graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))
    keep_only(graph, "initializer", (weight for weight in graph.initializer if weight.name not in names))
    keep_only(graph, "node", (node for node in graph.node if not _is_hidden(node, names)))
    keep_only(graph, "value_info", (value for value in graph.value_info if value.name not in names))
    # onnx follows long vectors as if they were shapes.
    _forget_long_vectors(graph)
    return replace(model, proto=proto)


def _forget_long_vectors(graph: onnx.GraphProto) -> None:
    """Make the lengths of long vectors unknown, in place.

    onnx's inference treats a vector of a known length as a possible shape, and then keeps an object for each element. For 29
    vectors of 12 million elements that took 120 s and 17 GB (DataPropagationContextImpl in
    onnx/shape_inference/implementation.cc).
    """
    for value in (*graph.input, *graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        if len(dims) == 1 and dims[0].dim_value > _LONG:
            dims[0].ClearField("dim_value")


def restore(graph: onnx.GraphProto, before: onnx.GraphProto, names: Set[str]) -> None:
    """Make the inputs that `hide` made weights of `graph` again, in place, those that something still reads.

    They are the references that they were in `before`. All that were there before come first, in that order.
    """
    if not names:
        return
    read = {name for node in graph.node for name in names_read(node)} | {
        output.name for output in graph.output
    }
    keep_only(graph, "input", (value for value in graph.input if value.name not in names))
    own = {tensor.name: tensor for tensor in graph.initializer}
    old = [
        own.pop(tensor.name) if tensor.name in own else tensor
        for tensor in before.initializer
        if tensor.name in own or (tensor.name in names and tensor.name in read)
    ]
    keep_only(graph, "initializer", (*old, *(tensor for tensor in graph.initializer if tensor.name in own)))
    # The Constants that were hidden come back if a node still reads them.
    constants = [node for node in before.node if _is_hidden(node, names) and node.output[0] in read]
    keep_only(graph, "node", (*constants, *graph.node))


def share_payloads(simplified: Model, before: Model) -> None:
    """Make `simplified` find its weights where `before` finds its own, in place; called before `restore`.

    A weight with the name, type, shape and bytes of one that was there before becomes the reference that it was.
    """
    old = dict(main_constants(before.proto.graph))
    names = {
        _place(tensor): name
        for name, tensor in main_constants(simplified.proto.graph)
        if tensor.data_location == TensorProto.EXTERNAL
    }
    weights = before.weights.copy()
    new: list[tuple[TensorProto, Payload]] = []
    for tensor in tensors(simplified.proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            payload = simplified.weights.payload(tensor)
            # Only a weight that onnxsim left unchanged can be the same.
            same = old.get(names.get(_place(tensor), ""))
            if same is not None and _equal(tensor, payload, same, before):
                tensor.CopyFrom(same)
            else:
                new.append((tensor, payload))
    # Few new bytes need no file of their own.
    is_inline = sum(payload.length for _, payload in new) <= _INLINE_AT_MOST
    for tensor, payload in new:
        if is_inline:
            tensor.CopyFrom(simplified.weights.inlined(tensor))
        else:
            weights.keep(tensor, payload)
    simplified.weights = weights


def _place(tensor: TensorProto) -> tuple[str, ...]:
    return tuple(entry.value for entry in tensor.external_data)


def _equal(tensor: TensorProto, payload: Payload, old: TensorProto, before: Model) -> bool:
    if old.data_location != TensorProto.EXTERNAL or (tensor.data_type, tensor.dims) != (
        old.data_type,
        old.dims,
    ):
        return False
    other = before.weights.payload(old)
    return payload.length == other.length and payload.read() == other.read()


def _is_hidden(node: onnx.NodeProto, names: Set[str]) -> bool:
    return constant_tensor(node) is not None and node.output[0] in names


def keep_only(graph: onnx.GraphProto, field: str, kept: Iterable[Any]) -> None:
    """Replace the messages of a repeated field by these, which may be some of its own."""
    copy = onnx.GraphProto()
    getattr(copy, field).extend(kept)
    graph.ClearField(field)
    getattr(graph, field).extend(getattr(copy, field))
