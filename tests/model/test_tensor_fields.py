"""Every place of a model that holds tensors is found, and so is one that a later onnx.proto adds."""

from __future__ import annotations

from typing import Any

import onnx
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import header
from onnx_migrate.model.tensor_fields import DATA_FIELDS, MODEL, TENSOR, MessageType, message_types


def paths(root: MessageType, depth: int) -> set[tuple[str, ...]]:
    """Return the field names of every way of at most `depth` fields from a message to a tensor."""
    if root is TENSOR:
        return {()}
    return {
        (f.name, *rest)
        for f in root.tensor_fields.values()
        if depth
        for rest in paths(f.message_type, depth - 1)
    }


def test_the_places_that_onnx_documents_are_found() -> None:
    assert paths(MODEL, 6) >= {
        ("graph", "initializer"),
        ("graph", "sparse_initializer", "values"),
        ("graph", "sparse_initializer", "indices"),
        ("graph", "node", "attribute", "t"),
        ("graph", "node", "attribute", "tensors"),
        ("graph", "node", "attribute", "sparse_tensor", "values"),
        ("graph", "node", "attribute", "sparse_tensors", "indices"),
        ("graph", "node", "attribute", "g", "initializer"),
        ("graph", "node", "attribute", "graphs", "initializer"),
        ("functions", "attribute_proto", "t"),
        ("functions", "node", "attribute", "t"),
        ("training_info", "initialization", "initializer"),
        ("training_info", "algorithm", "initializer"),
    }


def test_the_numbers_of_each_place_are_those_that_onnx_serialises() -> None:
    """Set one tensor at a time, wherever seven fields lead to one, and wrap its bytes in the tags of the way to it."""
    places = sorted(paths(MODEL, 7))
    for place in places:
        proto = onnx.ModelProto()
        message: Any = proto
        current, numbers = MODEL, []
        for name in place:
            number, field = next((n, f) for n, f in current.tensor_fields.items() if f.name == name)
            message = getattr(message, name).add() if field.repeated else getattr(message, name)
            numbers.append(number)
            current = field.message_type
        message.name = "w"
        want = message.SerializeToString()
        for number in reversed(numbers):
            want = header(number, len(want)) + want

        assert proto.SerializeToString() == want, place
    assert len(places) > 30


def test_the_data_fields_are_those_that_hold_elements() -> None:
    assert DATA_FIELDS == {
        "float_data": 4, "int32_data": 5, "string_data": 6, "int64_data": 7, "raw_data": 9, "double_data": 10,
        "uint64_data": 11,
    }  # fmt: skip


def test_a_field_that_a_later_onnx_adds_is_found() -> None:
    """The same derivation over onnx.proto with two more places: a node's own tensor and a new message of the model."""
    file = FileDescriptorProto()
    onnx.ModelProto.DESCRIPTOR.file.CopyToProto(file)
    file = FileDescriptorProto.FromString(
        file.SerializeToString().replace(b".onnx.", b".latr.")
    )  # of one length
    file.name, file.package = "later.proto", "latr"
    messages = {message.name: message for message in file.message_type}
    one, many = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
    kind = FieldDescriptorProto.TYPE_MESSAGE
    messages["NodeProto"].field.add(
        name="cached", number=900, label=one, type=kind, type_name=".latr.TensorProto"
    )
    bank = file.message_type.add(name="BankProto")
    bank.field.add(name="entries", number=3, label=many, type=kind, type_name=".latr.TensorProto")
    messages["ModelProto"].field.add(
        name="banks", number=901, label=many, type=kind, type_name=".latr.BankProto"
    )
    pool = DescriptorPool()
    pool.Add(file)

    found = message_types(
        pool.FindMessageTypeByName("latr.ModelProto"), pool.FindMessageTypeByName("latr.TensorProto")
    )

    assert found["latr.NodeProto"].tensor_fields[900].message_type is found["latr.TensorProto"]
    banks = found["latr.ModelProto"].tensor_fields[901]
    assert (banks.name, banks.repeated, banks.message_type.full_name) == ("banks", True, "latr.BankProto")
    assert found["latr.BankProto"].tensor_fields[3].repeated
    assert found.keys() == {name.replace("onnx.", "latr.") for name in message_types(
        onnx.ModelProto.DESCRIPTOR, TensorProto.DESCRIPTOR)} | {"latr.BankProto"}  # fmt: skip
