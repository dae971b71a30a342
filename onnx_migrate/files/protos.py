"""Reads a Model from a ModelProto, without a copy of large payloads, and puts a Model with its weights into one ModelProto."""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import encode_unknown, header
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import TensorPayload, has_type
from onnx_migrate.model.tensor_fields import DATA_FIELDS, MODEL, TENSOR, MessageType
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import INLINE_LIMIT, Weights

__all__ = ["inline", "structure_of"]

_REPLACED = frozenset({"raw_data", "float_data", "double_data", "external_data", "data_location"})
"""The fields of a tensor that a reference replaces."""


def structure_of(proto: onnx.ModelProto, weights: Weights) -> onnx.ModelProto:
    """Return a copy of `proto` in which large payloads are references that `weights` resolves; `proto` is not changed.

    No payload is copied, so a proto of more than 2 GB is fine. A tensor that is marked EXTERNAL and still has its
    `raw_data`, as onnx.external_data_helper.convert_model_to_external_data leaves it, keeps the data it has.
    """
    structure = onnx.ModelProto()
    _copy(proto, structure, MODEL, weights)
    return structure


def _copy(source: Message, target: Message, message_type: MessageType, weights: Weights) -> None:
    """Copy `source` into the empty `target`: the whole message if no payload in it becomes a reference, else by field."""
    # Most messages hold no payload.
    if not _has_payload(source, message_type):
        target.CopyFrom(source)
        return
    if isinstance(source, TensorProto) and isinstance(target, TensorProto):
        _copy_tensor(source, target, weights)
    else:
        for field, value in source.ListFields():
            _copy_field(field, value, target, message_type, weights)
    # Fields of a newer onnx must not be lost.
    unknown = encode_unknown(UnknownFieldSet(source))
    if unknown:
        target.MergeFromString(unknown)


def _copy_field(field: Any, value: Any, target: Message, message_type: MessageType, weights: Weights) -> None:
    """Set one field of `target`, a message of `message_type`, to `value`; payloads in it become references."""
    inner_type = (
        message_type.tensor_fields[field.number].message_type
        if field.number in message_type.tensor_fields
        else None
    )
    if isinstance(value, Message):
        inner = getattr(target, field.name)
        # An empty message must exist in the copy, too.
        inner.SetInParent()
        if inner_type is None:
            inner.CopyFrom(value)
        else:
            _copy(value, inner, inner_type, weights)
    elif inner_type is not None:
        added = getattr(target, field.name)
        for inner_message in value:
            _copy(inner_message, added.add(), inner_type, weights)
    elif hasattr(value, "MergeFrom"):
        getattr(target, field.name).MergeFrom(value)
    else:
        setattr(target, field.name, value)


def _copy_tensor(source: TensorProto, target: TensorProto, weights: Weights) -> None:
    """Copy all fields but the data, which becomes a reference, or stays if it is small."""
    for field in TensorProto.DESCRIPTOR.fields:
        if field.name in _REPLACED:
            continue
        value = getattr(source, field.name)  # cheap: the large fields are not read
        if hasattr(value, "MergeFrom") and not isinstance(value, Message):
            getattr(target, field.name).MergeFrom(value)
        elif source.HasField(field.name):
            _copy_field(field, value, target, TENSOR, weights)
    payload = TensorPayload.of(source)
    if payload.length > INLINE_LIMIT:
        weights.keep(target, payload)
    else:
        target.raw_data = source.raw_data


def _has_payload(message: Any, message_type: MessageType) -> bool:
    """Return whether a tensor in `message`, a message of `message_type`, has a payload that must not be copied."""
    if message_type is TENSOR:
        return TensorPayload.of(message).length > INLINE_LIMIT or _awaits_external_data(message)
    for field in message_type.tensor_fields.values():
        if field.repeated:
            for inner_message in getattr(message, field.name):
                if _has_payload(inner_message, field.message_type):
                    return True
        elif message.HasField(field.name) and _has_payload(getattr(message, field.name), field.message_type):
            return True
    return False


def _awaits_external_data(tensor: TensorProto) -> bool:
    """Return whether a tensor that holds its data is marked EXTERNAL, to be written as external data by onnx.save."""
    return tensor.data_location == TensorProto.EXTERNAL and tensor.HasField("raw_data")


def inline(model: Model) -> onnx.ModelProto:
    """Return a complete copy of the model that holds all its data, each payload in the field that it was read from.

    Takes as much memory as all weights. A reference to a file that the model was loaded without stays a reference (see
    `load`). Raises LoadError if a file that holds payloads has changed since it was read or is missing.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for tensor in tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL and not model.weights.is_absent(tensor):
            payload = model.weights.payload(tensor)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.ClearField("raw_data")
            # The payload may come from a field that its type does not have.
            if payload.field == "raw_data" or not has_type(payload.field, tensor.data_type):
                tensor.raw_data = payload.read()
            else:
                tensor.MergeFromString(header(DATA_FIELDS[payload.field], payload.length) + payload.read())
            # Fields of a newer onnx go on with the data.
            tensor.MergeFromString(payload.extra_fields)
    return proto
