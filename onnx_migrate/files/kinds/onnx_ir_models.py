"""An onnx_ir.Model: reads its structure, and gives a result back as one, with the tensor objects that the source had.

The exporter of torch.onnx and onnxscript hold models in onnx_ir. Its tensors may be lazy, or mapped from files. None of them is
evaluated here unless it is small and in memory: the structure refers to them, and the result gets the same objects. A pass that
needs the values of a tensor reads only that tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import onnx
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError
from onnx_migrate.files.kinds import ReturnedKind
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import ObjectPayload, byte_size
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import INLINE_LIMIT, MEMORY, Weights, clear_data, location_of

__all__ = ["KIND"]

_IN_MEMORY = ("Tensor", "TensorProtoTensor", "StringTensor", "PackedTensor")
"""Classes of onnx_ir whose values are already in memory."""


class _IrModel(ReturnedKind):
    title = "an onnx_ir.Model"

    def holds(self, source: object) -> bool:
        kind = type(source)
        return kind.__module__.partition(".")[0] == "onnx_ir" and kind.__name__ == "Model"

    def structure(self, source: Any, weights: Weights) -> onnx.ModelProto:
        """Return the structure of an onnx_ir.Model, whose tensors `weights` resolves; the model is not changed.

        Tensors in memory of up to INLINE_LIMIT bytes are part of the structure, all others references. Raises LoadError where
        onnx_ir cannot write the model.
        """
        ir = import_module("onnx_ir")
        try:
            # The user's model must stay unchanged.
            copy = source.clone()  # new graphs, nodes and values; the same tensors
            set_aside = [_set_aside(ir, holder, slot, weights) for holder, slot in list(_places(ir, copy))]
            proto: onnx.ModelProto = ir.serde.serialize_model(copy)
            for tensor in tensors(proto):
                location = location_of(tensor) if tensor.data_location == TensorProto.EXTERNAL else ""
                if location.startswith(MEMORY):
                    _write_small(ir, tensor, set_aside[int(location[len(MEMORY) :])])
        except Exception as error:  # onnx_ir's own kinds, and those of the tensors
            raise LoadError(
                f"onnx_ir cannot write this Model as a ModelProto: {error}",
                hint=Advice(
                    "call onnx_ir.to_proto(model) to see where; models are read from onnx_ir 0.1.14 on"
                ),
            ) from error
        return proto

    def given_back(self, result: Model, source: Any) -> Any:
        """Return a result as a new onnx_ir.Model, in which every tensor of `source` that is still there is the same object.

        Names, doc strings and metadata_props are the result's; `meta` of the model and of its graph are those of `source`. New
        tensors are of onnx_ir's own kinds. Raises LoadError if a file with new weights is gone.
        """
        ir = import_module("onnx_ir")
        proto = onnx.ModelProto()
        proto.CopyFrom(result.proto)
        for tensor in tensors(proto):
            if tensor.data_location != TensorProto.EXTERNAL or result.weights.is_absent(tensor):
                continue
            if not isinstance(result.weights.payload(tensor), ObjectPayload):
                tensor.CopyFrom(result.weights.inlined(tensor))
        small: dict[bytes, list[Any]] = {}
        for payload in result.weights.memory:
            if isinstance(payload, ObjectPayload) and payload.inlined:
                small.setdefault(payload.inlined, []).append(payload.tensor)
        new_model = ir.serde.deserialize_model(proto)
        for holder, slot in list(_places(ir, new_model)):
            tensor = _tensor_at(holder, slot)
            if isinstance(tensor, ir.ExternalTensor):
                location = str(tensor.location)
                if location.startswith(MEMORY):
                    payload = result.weights.memory[int(location[len(MEMORY) :])]
                    assert isinstance(payload, ObjectPayload)
                    _put(ir, holder, slot, payload.tensor)
            elif small and (same := small.get(_bytes_of(ir, tensor))):
                # Several small tensors may have the same bytes, and each object is used once.
                _put(ir, holder, slot, same.pop(0) if len(same) > 1 else same[0])
        new_model.meta.update(source.meta)
        new_model.graph.meta.update(source.graph.meta)
        return new_model

    def replace_content(self, source: Any, content: Any) -> None:
        """Give an onnx_ir.Model the content of another one, in place; its graphs, nodes and values are those of `content`."""
        source.graph = content.graph
        source.ir_version = content.ir_version
        source.functions.clear()
        source.functions.update(content.functions)
        for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            setattr(source, name, getattr(content, name))
        source.metadata_props.clear()
        source.metadata_props.update(content.metadata_props)


KIND = _IrModel()


def _places(ir: Any, model: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the places of a model's tensors: the value of an initializer, or a node, an attribute's name and an index."""
    for graph in (model.graph, *model.functions.values()):
        yield from (
            (value, None)
            for value in getattr(graph, "initializers", {}).values()
            # An initializer may lack its data.
            if value.const_value is not None
        )
        for ir_node in ir.traversal.RecursiveGraphIterator(graph):
            for attribute in ir_node.attributes.values():
                # A reference has no tensor of its own.
                if attribute.is_ref():
                    continue
                if attribute.type == ir.AttributeType.TENSOR:
                    yield ir_node, (attribute.name, None)
                elif attribute.type == ir.AttributeType.TENSORS:
                    yield from ((ir_node, (attribute.name, index)) for index in range(len(attribute.value)))
                elif attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
                    inner = attribute.value
                    for body in inner if attribute.type == ir.AttributeType.GRAPHS else (inner,):
                        yield from (
                            (value, None)
                            for value in body.initializers.values()
                            if value.const_value is not None
                        )


def _tensor_at(holder: Any, place: Any) -> Any:
    if place is None:
        return holder.const_value
    value = holder.attributes[place[0]].value
    return value if place[1] is None else value[place[1]]


def _put(ir: Any, holder: Any, place: Any, tensor: Any) -> None:
    if place is None:
        holder.const_value = tensor
        return
    name, index = place
    old = holder.attributes[name]
    value = tensor
    if index is not None:
        value = [*old.value]
        value[index] = tensor
    holder.attributes[name] = ir.Attr(name, old.type, value, doc_string=old.doc_string)


def _set_aside(ir: Any, holder: Any, place: Any, weights: Weights) -> ObjectPayload:
    """Put a reference in place of a tensor, and return the payload that it refers to."""
    tensor = _tensor_at(holder, place)
    dtype = int(tensor.dtype.value)
    dims = [int(dim) for dim in tensor.shape]
    length = byte_size(dims, dtype)
    payload = ObjectPayload(tensor, int(tensor.nbytes) if length is None else length)
    reference = ir.ExternalTensor(
        f"{MEMORY}{len(weights.memory)}",
        0,
        payload.length,
        tensor.dtype,
        shape=ir.Shape(dims),
        name=tensor.name or "",
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
        base_dir="",
    )
    weights.memory.append(payload)
    _put(ir, holder, place, reference)
    return payload


def _write_small(ir: Any, tensor: TensorProto, payload: ObjectPayload) -> None:
    """Write the data of a small tensor, or of one of texts, which cannot be external, into the structure."""
    held = payload.tensor
    texts = tensor.data_type == TensorProto.STRING
    # Even small tensors in files stay references.
    if not texts and (payload.length > INLINE_LIMIT or type(held).__name__ not in _IN_MEMORY):
        return
    clear_data(tensor)
    if texts:
        tensor.string_data.extend(held.string_data())
    else:
        tensor.raw_data = held.tobytes()
    payload.inlined = _bytes_of(ir, tensor)


def _bytes_of(ir: Any, tensor: Any) -> bytes:
    """Return the bytes that identify a small tensor, of onnx or of onnx_ir; an older IR version may drop its metadata."""
    copy = TensorProto()
    copy.CopyFrom(tensor if isinstance(tensor, TensorProto) else ir.serde.serialize_tensor(tensor))
    if "metadata_props" in TensorProto.DESCRIPTOR.fields_by_name:
        copy.ClearField("metadata_props")
    return bytes(copy.SerializeToString(deterministic=True))
