"""Compares two models, down to the bytes of their weights."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import Payload
from onnx_migrate.model.tensors import tensors

__all__ = ["equal"]


def equal(a: Model, b: Model) -> bool:
    """Return whether the models differ in nothing but where their weights are stored.

    Weights are read only if the structures are equal, and of those only payloads that are not in the same place of the
    same file. Raises LoadError if a payload cannot be read.
    """
    first, second = _structure(a), _structure(b)
    if first[0] != second[0]:
        return False
    return all(_equal(x, y) for x, y in zip(first[1], second[1], strict=True))


def _structure(model: Model) -> tuple[bytes, list[Payload]]:
    """Return the serialised model without the places of its payloads, and the payloads in order."""
    proto, payloads = onnx.ModelProto(), []
    proto.CopyFrom(model.proto)
    for tensor in tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            payload = model.weights.payload(tensor)
            payloads.append(payload)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = f"{payload.field} of {payload.length}".encode()
    return proto.SerializeToString(deterministic=True), payloads


def _equal(a: Payload, b: Payload) -> bool:
    return a == b or a.read() == b.read()
