"""The protobuf fields of a model that lead to tensors, and the fields of a tensor that hold data, from onnx's descriptors.

ONNX stores a tensor in many places: initializers, sparse initializers, attributes, the bodies of functions, training
graphs. This module lists none of them. The message types and field numbers follow from the descriptors of the installed
onnx package. So the module also finds a place that a later onnx adds.

Source of the message definitions: onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import onnx
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto
from onnx import TensorProto

__all__ = ["ATTRIBUTE", "DATA_FIELDS", "MODEL", "TENSOR", "MessageType", "TensorField", "message_types"]


@dataclass(eq=False)
class MessageType:
    """A message type that is TensorProto, or that has at least one field that leads to a TensorProto.

    `tensor_fields` holds those fields by number, those with the shortest way to a tensor first; TensorProto has none.
    """

    full_name: str
    tensor_fields: dict[int, TensorField] = field(default_factory=dict)


@dataclass(frozen=True)
class TensorField:
    """A field whose value is, or contains, tensors: its name, whether it is repeated, and the type of its messages."""

    name: str
    repeated: bool
    message_type: MessageType


def message_types(root: Any, tensor: Any) -> dict[str, MessageType]:
    """Return, by full name, the message types reachable from descriptor `root` that lead to descriptor `tensor`.

    The types may refer to each other in cycles, as GraphProto and AttributeProto do.
    """
    declared: dict[str, list[tuple[FieldDescriptorProto, str]]] = {}
    pending = [root]
    while pending:
        descriptor = pending.pop()
        if descriptor.full_name in declared:
            continue
        # The declaration says in all releases of protobuf, by its label, whether a field is repeated.
        declaration = DescriptorProto()
        descriptor.CopyToProto(declaration)
        fields = [
            (f, descriptor.fields_by_name[f.name].message_type)
            for f in declaration.field
            if f.type == f.TYPE_MESSAGE
        ]
        declared[descriptor.full_name] = [(f, inner.full_name) for f, inner in fields]
        pending.extend(inner for _, inner in fields)

    # How many fields lead from a type to a tensor, found outwards from the tensor.
    distance, latest = {tensor.full_name: 0}, {tensor.full_name}
    while latest:
        latest = {
            name
            for name, children in declared.items()
            if name not in distance and any(child in latest for _, child in children)
        }
        distance.update(dict.fromkeys(latest, max(distance.values()) + 1))

    leading_types = {name: MessageType(name) for name in declared if name in distance}
    for name, message in leading_types.items():
        if name == tensor.full_name:
            continue
        leading = [(f, child) for f, child in declared[name] if child in distance]
        nearest_first = sorted(leading, key=lambda each: (distance[each[1]], each[0].number))
        message.tensor_fields = {
            f.number: TensorField(f.name, f.label == f.LABEL_REPEATED, leading_types[child])
            for f, child in nearest_first
        }
    return leading_types


_TYPES = message_types(onnx.ModelProto.DESCRIPTOR, TensorProto.DESCRIPTOR)

MODEL = _TYPES[onnx.ModelProto.DESCRIPTOR.full_name]
"""The type of a whole model: all other types are found through its fields."""

TENSOR = _TYPES[TensorProto.DESCRIPTOR.full_name]
"""The type of a tensor, where each search ends."""

ATTRIBUTE = _TYPES[onnx.AttributeProto.DESCRIPTOR.full_name]
"""The message type of an attribute; the `type` of most attributes says that they hold no tensor."""

DATA_FIELDS: dict[str, int] = {
    name: f.number
    for name, f in TensorProto.DESCRIPTOR.fields_by_name.items()
    if name.endswith("_data") and f.message_type is None
}
"""The numbers of TensorProto's fields that hold elements (raw_data, float_data, ...), by name; not external_data."""
