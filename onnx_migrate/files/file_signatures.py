"""What a file that is not an ONNX model looks like, for the one line that says so."""

from __future__ import annotations

from google.protobuf.message import DecodeError
from onnx import TensorProto

__all__ = ["HEAD", "describe"]

HEAD = 4096
"""How many of a file's first bytes `describe` needs."""

_STARTS: tuple[tuple[bytes, str, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the file itself", "git lfs pull"),
    (b"\x1f\x8b", "gzip-compressed", "gunzip it first"),
    (b"BZh", "bzip2-compressed", "bunzip2 it first"),
    (b"\xfd7zXZ\0", "xz-compressed", "unxz it first"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "unzstd it first"),
    (b"\x89HDF", "an HDF5 file, perhaps a Keras model", "export it to ONNX, for example with tf2onnx"),
    (b"\x93NUMPY", "a NumPy array", ""),
    (b"GGUF", "a GGUF model", ""),
    (b"\x80\x02", "a Python pickle, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"),
    (b"\x80\x04", "a Python pickle, perhaps a PyTorch checkpoint", "export it with torch.onnx.export"),
)


def describe(head: bytes) -> tuple[str, str]:
    """Return what a file's first bytes look like and what would help; empty strings if they tell nothing."""
    for start, looks, hint in _STARTS:
        if head.startswith(start):
            return looks, hint
    if head.startswith(b"PK\x03\x04"):
        if b"data.pkl" in head or b"/version" in head or b"constants.pkl" in head:
            return "a PyTorch archive", "export it with torch.onnx.export"
        return "a zip archive", "unzip it first"
    if head[4:8] in (b"ORTM", b"TFL3"):
        if head[4:8] == b"ORTM":
            return "a model in ONNX Runtime's own .ort format", "give the .onnx it was made from"
        return "a TensorFlow Lite model", "export it to ONNX, for example with tf2onnx"
    if head[257:262] == b"ustar":
        return "a tar archive", "unpack it first"
    if head[8:10] == b'{"' and head[5:8] == b"\0\0\0":
        return "a safetensors file", "it holds weights without a graph"
    try:
        text = head.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")
    except UnicodeDecodeError:
        return "", ""
    if not text or not _is_text(head):
        return _tensor(head)
    low = text.lower()
    if low.startswith(("<!doctype html", "<html")) or "<html" in low[:512]:
        return "an HTML page, not the file it was to be", "download it again"
    if "ir_version" in low[:512]:
        if low.startswith("{"):
            return "an ONNX model as JSON", "google.protobuf.json_format.Parse and onnx.save make it binary"
        if low.startswith("<") or "opset_import: [" in low:
            return "ONNX's text format", "onnx.parser.parse_model and onnx.save make it binary"
        return (
            "an ONNX model as protobuf text",
            "google.protobuf.text_format.Parse and onnx.save make it binary",
        )
    if low.startswith("<?xml"):
        return "XML, perhaps an OpenVINO model", ""
    return "text", ""


def _is_text(head: bytes) -> bool:
    """Tell whether the bytes are printable text, as far as can be seen."""
    return not any(byte < 9 or 13 < byte < 32 for byte in head)


def _tensor(head: bytes) -> tuple[str, str]:
    """Recognise a serialised TensorProto, such as the test data that lies beside many models."""
    # Cut within its payload, a tensor's first fields (dims, data_type, a name) are still there to be seen.
    try:
        tensor = TensorProto.FromString(head[: max(head.find(b"\x4a"), 0)] if len(head) >= HEAD else head)
    except DecodeError:
        return "", ""
    if tensor.data_type in TensorProto.DataType.values() and tensor.data_type:
        return "a TensorProto, a saved tensor such as a test input", "give the model it belongs to"
    return "", ""
