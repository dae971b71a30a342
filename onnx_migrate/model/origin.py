"""The metadata of a float32 model that came from a narrow type: the nodes that were float32 in it."""

from __future__ import annotations

import onnx

from onnx_migrate.standard.element_types import type_name

__all__ = ["origin_key", "was_narrow"]


def origin_key(kind: int) -> str:
    """Return the key of the metadata for a narrow type."""
    return f"onnx_migrate.float32_beside_{type_name(kind)}"


def was_narrow(proto: onnx.ModelProto, kind: int) -> bool:
    """Return whether a model came from a narrow type, so that its weights hold numbers of that type."""
    return any(entry.key == origin_key(kind) for entry in proto.metadata_props)
