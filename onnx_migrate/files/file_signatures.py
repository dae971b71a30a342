"""Recognises the kind of a file that is not an ONNX model, for the error message."""

from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from onnx_migrate.advice import Advice, advice_of
from onnx_migrate.errors import LoadError
from onnx_migrate.files.wire.protobuf import (
    BYTES,
    FIXED32,
    FIXED64,
    GROUP,
    VARINT,
    Malformed,
    decode_varint,
    encode_varint,
)

__all__ = ["HEAD", "describe", "may_be_model", "not_a_model"]

HEAD = 4096
"""Number of a file's first bytes that are needed to recognise it."""

_STARTS: tuple[tuple[bytes, str, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "run git lfs pull"),
    (b"\x1f\x8b", "gzip-compressed", "gunzip it first"),
    (b"BZh", "bzip2-compressed", "bunzip2 it first"),
    (b"\xfd7zXZ\0", "xz-compressed", "unxz it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "unzstd it first"),
    (b"\x89HDF", "an HDF5 file, perhaps a Keras model", "export it to ONNX, for example with tf2onnx"),
    (b"\x93NUMPY", "a NumPy array", "give the model, not an input of it"),
    (b"GGUF", "a GGUF model", "give the ONNX model, GGUF is not read"),
    (b"\x80\x02", "a Python pickle, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"),
    (b"\x80\x04", "a Python pickle, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"),
)

_RAW_DATA_TAG = encode_varint(TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number << 3 | BYTES)


def describe(head: bytes) -> tuple[str, str]:
    """Return the kind of a file by its first bytes, and a hint; two empty strings if `describe` does not recognise it."""
    for start, looks, hint in _STARTS:
        if head.startswith(start):
            return looks, hint
    # Both kinds are zip archives.
    if head.startswith(b"PK\x03\x04"):
        if b"data.pkl" in head or b"/version" in head or b"constants.pkl" in head:
            return "a PyTorch archive", "export it with torch.onnx.export"
        return "a zip archive", "unzip it first"
    if head[4:8] in (b"ORTM", b"TFL3"):
        if head[4:8] == b"ORTM":
            return "a model in ONNX Runtime's own .ort format", "give the .onnx it was made from"
        return "a TensorFlow Lite model", "export it to ONNX, for example with tf2onnx"
    # The mark of a tar archive is inside its first header.
    if head[257:262] == b"ustar":
        return "a tar archive", "unpack it first"
    if head[8:10] == b'{"' and head[5:8] == b"\0\0\0":
        return "a safetensors file", "it holds weights without a graph: export the model to ONNX"
    text = head.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")
    if not text or not _is_text(head):
        return _tensor(head)
    low = text.lower()
    if low.startswith(("<!doctype html", "<html")) or "<html" in low[:512]:
        return "an HTML page, perhaps the error page of a download", "download the file again"
    # All text forms of a model have this field near their start.
    if "ir_version" in low[:512]:
        if low.startswith("{"):
            return "an ONNX model as JSON", "convert it with google.protobuf.json_format.Parse and onnx.save"
        if low.startswith("<") or "opset_import: [" in low:
            return "ONNX's text format", "convert it with onnx.parser.parse_model and onnx.save"
        return (
            "an ONNX model as protobuf text",
            "convert it with google.protobuf.text_format.Parse and onnx.save",
        )
    if low.startswith("<?xml"):
        return "XML, perhaps an OpenVINO model", "give the ONNX model it was made from"
    return "text", ""


def may_be_model(head: bytes) -> bool:
    """Return whether a file that begins with these bytes may be a model, perhaps with a field first that onnx does not know."""
    try:
        tag, _ = decode_varint(head, 0, len(head))
    except Malformed:
        return False
    return tag >> 3 > 0 and tag & 7 in (VARINT, FIXED64, BYTES, GROUP, FIXED32) and not describe(head)[0]


def _is_text(head: bytes) -> bool:
    """Return whether the bytes contain no control characters except white space."""
    return not any(byte < 9 or 13 < byte < 32 for byte in head)


def _tensor(head: bytes) -> tuple[str, str]:
    """Recognise a serialised TensorProto, such as the test inputs that many model zoos put beside a model."""
    # The head of a long tensor ends within raw_data; the fields before that field's tag (dims, data_type, name) are complete.
    try:
        tensor = TensorProto.FromString(
            head[: max(head.find(_RAW_DATA_TAG), 0)] if len(head) >= HEAD else head
        )
    except DecodeError:
        return "", ""
    if tensor.data_type in TensorProto.DataType.values() and tensor.data_type:
        return "a TensorProto, a saved tensor such as a test input", "give the model it belongs to"
    return "", ""


def not_a_model(error: Malformed, head: bytes, total: int, name: str) -> LoadError:
    """Return the error for `total` bytes that begin with `head` and do not parse as a model, because of `error`."""
    looks, hint = describe(head)
    # The kind of another file says more than the position of an error.
    if looks:
        return LoadError(f"{name} is not an ONNX model: {looks}", hint=advice_of(hint, tried=False))
    if not _starts_as_model(head):
        return LoadError(
            f"{name} is not an ONNX model: not a protobuf message", hint="give the path of an .onnx file"
        )
    if error.missing:
        lost = f"{error.missing} bytes are missing" if error.missing > 1 else "the end is missing"
        return LoadError(
            f"{name} is truncated: it ends at byte {total}, within a field that starts at byte {error.at}; {lost}",
            code="truncated",
            hint=Advice("copy or download it again"),
        )
    where = f"at byte {error.at}: " if error.at else ""
    return LoadError(
        f"{name} is not a valid ONNX model: {where}{error.reason}", hint=Advice("copy or download it again")
    )


_MODEL_FIELDS = {
    field.number: BYTES if field.type in (field.TYPE_MESSAGE, field.TYPE_STRING, field.TYPE_BYTES) else VARINT
    for field in onnx.ModelProto.DESCRIPTOR.fields
}
"""The wire type of each field of ModelProto: its other fields are integers."""


def _starts_as_model(head: bytes) -> bool:
    """Return whether the first tag is one of a field of ModelProto."""
    try:
        tag, _ = decode_varint(head, 0, len(head))
    except Malformed:
        return False
    return _MODEL_FIELDS.get(tag >> 3) == tag & 7
