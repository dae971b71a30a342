"""Compares two models, down to the bytes of their weights, and files by a digest of their content."""

from __future__ import annotations

import hashlib
from pathlib import Path

import onnx
from onnx import TensorProto

from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import Payload, pieces_of
from onnx_migrate.model.tensors import tensors
from onnx_migrate.safe_open import open_regular

__all__ = ["equal", "file_digest", "same_bytes"]

_PIECE = 1 << 22
"""Number of bytes to compare at a time."""


def equal(a: Model, b: Model) -> bool:
    """Return whether the models are equal; only the places of their weights may differ.

    Weights are read only if the structures are equal, and of those only payloads that are not in the same place of the
    same file. Raises LoadError if a payload cannot be read.
    """
    if len(a.proto.graph.node) != len(b.proto.graph.node):
        return False  # to spare the copies, as below
    mine, its = a.weights, b.weights
    shared = mine.folder == its.folder and list(map(id, mine.memory)) == list(map(id, its.memory))
    if shared and a.proto.SerializeToString() == b.proto.SerializeToString():
        return True
    first, second = _structure(a), _structure(b)
    if first[0] != second[0]:
        return False
    return all(same_bytes(x, y) for x, y in zip(first[1], second[1], strict=True))


def same_bytes(a: Payload, b: Payload) -> bool:
    """Return whether two payloads hold the same bytes; they are not read if both are in the same place of a file.

    Raises LoadError if one cannot be read.
    """
    if a is b or a == b:
        return True
    if a.length != b.length:
        return False
    return all(
        piece == other for piece, other in zip(pieces_of(a, _PIECE), pieces_of(b, _PIECE), strict=True)
    )


def _structure(model: Model) -> tuple[bytes, list[Payload]]:
    """Return the serialised model without references to its payloads, and the payloads in order."""
    proto, payloads = onnx.ModelProto(), []
    proto.CopyFrom(model.proto)
    for tensor in tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            payload = model.weights.payload(tensor)
            payloads.append(payload)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            # The place of the data must not make equal models differ.
            tensor.raw_data = f"{payload.field} of {payload.length}".encode()
    return proto.SerializeToString(deterministic=True), payloads


def file_digest(path: Path) -> str:
    """Return the BLAKE2b of a file's content, 16 bytes long, in hexadecimal."""
    digest = hashlib.blake2b(digest_size=16)
    # A pipe or a device must not block the call.
    with open(open_regular(path), "rb") as file:
        # In blocks, because a model may be larger than the memory.
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
