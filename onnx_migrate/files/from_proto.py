"""The structure of a model the caller has in memory, referring to the payloads in the caller's tensors."""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import BYTES, FIXED32, FIXED64, GROUP, GROUP_END, VARINT, encoded
from onnx_migrate.model.weights import INLINE_LIMIT, TensorPayload, Weights, byte_size, data_field

__all__ = ["borrow"]

_HOLDERS = frozenset(
    f"onnx.{name}Proto"
    for name in ("Model", "Graph", "Node", "Attribute", "Tensor", "SparseTensor", "Function", "TrainingInfo")
)
_DATA = frozenset({"raw_data", "float_data", "double_data", "external_data", "data_location"})


def borrow(proto: onnx.ModelProto, weights: Weights) -> onnx.ModelProto:
    """Return a copy of `proto`, itself unchanged, with large payloads as references that `weights` keeps.

    No payload is copied, so a proto of more than 2 GB is fine. A tensor that is marked EXTERNAL and still has
    its `raw_data`, as onnx.external_data_helper.convert_model_to_external_data leaves it, is taken by that.
    """
    copy = onnx.ModelProto()
    _copy(proto, copy, weights)
    return copy


def _copy(source: Message, target: Message, weights: Weights) -> None:
    """Copy `source` into the empty `target`; whole where nothing is to be left out, else field by field."""
    if not _split(source):
        target.CopyFrom(source)
        return
    if isinstance(source, TensorProto) and isinstance(target, TensorProto):
        _copy_tensor(source, target, weights)
    else:
        for field, value in source.ListFields():
            _copy_field(field, value, target, weights)
    unknown = _wire_bytes(UnknownFieldSet(source))
    if unknown:
        target.MergeFromString(unknown)


def _copy_field(field: Any, value: Any, target: Message, weights: Weights) -> None:
    """Set one field of `target` to `value`, looking into messages that may hold a tensor."""
    holder = field.message_type is not None and field.message_type.full_name in _HOLDERS
    if isinstance(value, Message):
        inner = getattr(target, field.name)
        inner.SetInParent()
        if holder:
            _copy(value, inner, weights)
        else:
            inner.CopyFrom(value)
    elif holder:
        added = getattr(target, field.name)
        for item in value:
            _copy(item, added.add(), weights)
    elif hasattr(value, "MergeFrom"):
        getattr(target, field.name).MergeFrom(value)
    else:
        setattr(target, field.name, value)


def _copy_tensor(source: TensorProto, target: TensorProto, weights: Weights) -> None:
    """Copy all but the data, which becomes a reference (or stays, if it is small)."""
    for field in TensorProto.DESCRIPTOR.fields:
        if field.name in _DATA:
            continue
        value = getattr(source, field.name)  # cheap: the large fields are not read
        if hasattr(value, "MergeFrom") and not isinstance(value, Message):
            getattr(target, field.name).MergeFrom(value)
        elif source.HasField(field.name):
            _copy_field(field, value, target, weights)
    length = _length(source)
    if length > INLINE_LIMIT:
        weights.keep(target, TensorPayload(source, length))
    else:
        target.raw_data = source.raw_data


def _split(message: Message) -> bool:
    """Tell whether something in `message` must not be copied as it is."""
    if isinstance(message, TensorProto):
        return _length(message) > INLINE_LIMIT or _waiting(message)
    if isinstance(message, onnx.NodeProto):
        return any(_split(attribute) for attribute in message.attribute)
    if isinstance(message, onnx.AttributeProto):
        return (
            any(
                message.HasField(name) and _split(getattr(message, name))
                for name in ("t", "g", "sparse_tensor")
            )
            or any(_split(tensor) for tensor in message.tensors)
            or any(_split(graph) for graph in message.graphs)
            or any(_split(sparse) for sparse in message.sparse_tensors)
        )
    if isinstance(message, onnx.SparseTensorProto):
        return _split(message.values) or _split(message.indices)
    if isinstance(message, onnx.FunctionProto):
        return any(map(_split, message.attribute_proto)) or any(map(_split, message.node))
    if isinstance(message, onnx.GraphProto):
        return (
            any(map(_split, message.initializer))
            or any(map(_split, message.sparse_initializer))
            or any(map(_split, message.node))
        )
    return True  # the model, its training: two levels that are cheap to copy by field


def _waiting(tensor: TensorProto) -> bool:
    """Tell whether a tensor held in memory is marked to be written as external data and has not been."""
    return tensor.data_location == TensorProto.EXTERNAL and tensor.HasField("raw_data")


def _length(tensor: TensorProto) -> int:
    """Return how many bytes of data the tensor holds itself in a way that can be referred to, else 0."""
    if tensor.data_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return 0
    lists = [len(getattr(tensor, name)) for name in _LISTS]
    if tensor.HasField("raw_data"):
        if any(lists):
            return 0
        # By dims and type: to ask raw_data for its length is to copy it. `TensorPayload.read` compares.
        length = byte_size(tensor.dims, tensor.data_type)
        return len(tensor.raw_data) if length is None else length
    name = data_field(tensor)
    if name is None or tensor.data_location == TensorProto.EXTERNAL or sum(map(bool, lists)) > 1:
        return 0
    return len(getattr(tensor, name)) * (4 if name == "float_data" else 8)


_LISTS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def _wire_bytes(unknown: Any) -> bytes:
    """Serialise a set of unknown fields, in order."""
    out = bytearray()
    for field in unknown:
        out += encoded(field.field_number << 3 | field.wire_type)
        if field.wire_type == VARINT:
            out += encoded(field.data)
        elif field.wire_type == BYTES:
            out += encoded(len(field.data)) + field.data
        elif field.wire_type == GROUP:
            out += _wire_bytes(field.data) + encoded(field.field_number << 3 | GROUP_END)
        else:
            out += field.data.to_bytes({FIXED32: 4, FIXED64: 8}[field.wire_type], "little")
    return bytes(out)
