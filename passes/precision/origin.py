"""The nodes that a narrow model computes in float32: its float32 version keeps their names, so that the way back is the same.

The names are in the metadata of the model, as a JSON object under one key for each type. A search begins with these nodes. So
weights that go to float32 and back have the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from math import prod

import onnx
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.model.origin import origin_key

from .island_steps import Islands, islands_of
from .stored_narrow import SMALL

__all__ = ["forget_origin", "note_origin", "origin_of"]

_MOST = 1 << 16
"""Bytes of names up to which the metadata has them."""


def note_origin(frames: Iterable[Frame], narrow: Iterable[int], proto: onnx.ModelProto) -> None:
    """Write into the metadata of a float32 version which nodes and large weights of the narrow model in `frames` are float32.

    `narrow` are the types that the model may have been in.
    """
    steps = [step for frame in frames for step in frame.steps]
    for kind in narrow:
        if not any(value.dtype == kind for step in steps for value in step.made):
            continue
        nodes = [step.node.output[0] for step in steps if _is_float32(step) and step.node.output]
        weights = dict.fromkeys(value.name for step in steps if _is_float32(step) for value in _large(step))
        text = json.dumps({"nodes": nodes, "weights": [*weights]}, separators=(",", ":"))
        # The metadata may still have the names of an earlier conversion.
        forget_origin(kind, proto)
        if len(text) <= _MOST:
            proto.metadata_props.add(key=origin_key(kind), value=text)


def origin_of(frames: Iterable[Frame], kind: int, proto: onnx.ModelProto) -> tuple[Islands, Islands] | None:
    """Return the nodes that were float32 when the model was in a type, and those whose weights were; None if nothing says so."""
    texts = [entry.value for entry in proto.metadata_props if entry.key == origin_key(kind)]
    try:
        names = json.loads(texts[0]) if texts else None
        nodes, weights = {*names["nodes"]}, {*names["weights"]}  # type: ignore[index]
    except (ValueError, TypeError, KeyError):  # no such entry, or one that somebody edited
        return None
    kept_steps = [step for frame in frames for step in frame.steps if {*step.node.output[:1]} & nodes]
    return islands_of(kept_steps), islands_of(
        step for step in kept_steps if any(value.name in weights for value in _large(step))
    )


def forget_origin(kind: int, proto: onnx.ModelProto) -> None:
    """Remove the names for a type from the metadata."""
    for entry in [entry for entry in proto.metadata_props if entry.key == origin_key(kind)]:
        proto.metadata_props.remove(entry)


def _is_float32(step: Step) -> bool:
    floats = [value for value in step.made if value.dtype == TensorProto.FLOAT]
    return bool(floats) and not step.is_a("Cast", "Constant")


def _large(step: Step) -> Iterator[Value]:
    """Yield the weights of a node that would be stored in a narrow type if they may be."""
    for value in step.read:
        if (
            value.tensor is not None
            and value.dtype == TensorProto.FLOAT
            and 4 * prod(value.tensor.dims) > SMALL
        ):
            yield value
