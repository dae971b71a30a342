"""What a file is that is not a model, by its first bytes, and the error that names it."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from onnx_migrate.files.file_signatures import HEAD, describe, not_a_model
from onnx_migrate.files.wire.protobuf import Malformed
from tests.files.feature_models import plain, weight


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"\xfd7zXZ\0rest", "xz"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"GGUF\x03", "GGUF"),
        (b"PK\x03\x04" + b"\0" * 26 + b"archive/data.pkl", "PyTorch"),
        (b"PK\x03\x04" + b"\0" * 26 + b"model.onnx", "zip"),
        (bytes(257) + b"ustar\x0000", "tar"),
        (b"\x40\0\0\0\0\0\0\0" + b'{"w": {}}', "safetensors"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>", "XML"),
        (b"  <html><body>404", "HTML"),
        (b'{"ir_version": "8"}', "JSON"),
        (weight("w").SerializeToString()[:HEAD], "TensorProto"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_known_formats_are_recognised(head: bytes, what: str) -> None:
    assert what in describe(head)[0]


@pytest.mark.parametrize("head", [b"", b"\x01\x02\x03\x04", plain().SerializeToString()[:HEAD]])
def test_unknown_bytes_and_models_are_not(head: bytes) -> None:
    assert describe(head) == ("", "")


def filled(message: Any, name: str) -> bytes:
    """Return the bytes of a message of which one field is set."""
    field = message.DESCRIPTOR.fields_by_name[name]
    value = getattr(message, name)
    if hasattr(value, "add"):
        value.add()
    elif field.message_type is not None:
        value.SetInParent()
    else:
        setattr(message, name, type(value)(1))
    return bytes(message.SerializeToString())


@pytest.mark.parametrize("name", [field.name for field in onnx.ModelProto.DESCRIPTOR.fields])
def test_bytes_that_begin_with_any_field_of_a_model_are_a_damaged_model(name: str) -> None:
    """Compared with onnx's own serialisation: bytes that begin as a model are called a damaged one."""
    head = filled(onnx.ModelProto(), name)

    assert "is not a valid ONNX model" in str(not_a_model(Malformed("r", 3), head, 100, "a.onnx"))


def test_bytes_that_begin_otherwise_are_no_protobuf_message() -> None:
    for head in (b"\x0a\x01x", b"\x4a\x01x", b"\x3d\0\0\0\0", b"\xff" * 11):
        assert "not a protobuf message" in str(not_a_model(Malformed("r", 3), head, 100, "a.onnx"))


def test_a_cut_file_is_named_with_the_bytes_that_are_missing() -> None:
    error = not_a_model(Malformed("r", 20, missing=7), b"\x08\x08\x3a", 50, "a.onnx")

    assert error.code == "truncated"
    assert "ends at byte 50, within a field that starts at byte 20; 7 bytes are missing" in error.reason
    assert (
        "the end is missing" in not_a_model(Malformed("r", 20, missing=1), b"\x08\x08", 50, "a.onnx").reason
    )
