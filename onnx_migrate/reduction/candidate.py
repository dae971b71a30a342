"""A model to check, with values for its inputs and the values that its outputs must have."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import all_nodes, bodies, fed_inputs
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import MEMORY, location_of
from onnx_migrate.reduction.recording import Values
from onnx_migrate.rewrite.operator_counts import operator_counts

__all__ = ["Candidate", "node_count", "operators_of"]


def node_count(proto: onnx.ModelProto) -> int:
    """Return the number of nodes of a model, with those of sub-graphs and functions, without Constants."""
    return sum(node.op_type != "Constant" for node in all_nodes(proto))


def operators_of(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the number of nodes of each operator of a model."""
    return dict(operator_counts(bodies(proto)))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model, a value for each of its inputs, and the recorded values of its main graph; some may be unknown."""

    model: Model
    feed: Mapping[str, Any]
    values: Values = field(default_factory=Values)
    is_static: bool = False
    """Whether inputs have the sizes of the feed, so that sizes of shapes are constants."""
    path: str = ""
    """The file that the model was read from, if it is unchanged."""

    @property
    def proto(self) -> onnx.ModelProto:
        """Return the structure of the model."""
        return self.model.proto

    @cached_property
    def expected(self) -> Mapping[str, Any] | None:
        """The values of the outputs, None if one was not recorded."""
        names = [output.name for output in self.proto.graph.output]
        values = {name: self.feed[name] if name in self.feed else self.values.get(name) for name in names}
        return None if any(value is None for value in values.values()) else values

    @cached_property
    def key(self) -> bytes:
        """A digest of the structure and of the values of the inputs; weights in files count by their references."""
        digest = hashlib.sha256(self.path.encode())
        digest.update(self.proto.SerializeToString(deterministic=True))
        for tensor in self.proto.graph.initializer:
            # A reference to memory says nothing about the numbers, unlike one to a file.
            if tensor.data_location == TensorProto.EXTERNAL and location_of(tensor).startswith(MEMORY):
                digest.update(self.model.weights.payload(tensor).read())
        for name in sorted(self.feed):
            value = self.feed[name]
            array = value if isinstance(value, np.ndarray) else np.asarray(repr(value))
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(
                # The memory of an array of texts holds addresses, which differ from run to run.
                str(array.tolist()).encode() if array.dtype.hasobject else np.ascontiguousarray(array).data
            )
        return digest.digest()

    @cached_property
    def size(self) -> tuple[int, int]:
        """Return the number of nodes, and that of elements of weights and inputs."""
        elements = sum(prod(tensor.dims) for tensor in self.proto.graph.initializer)
        elements += sum(int(np.size(value)) for value in self.feed.values() if isinstance(value, np.ndarray))
        return node_count(self.proto), elements

    def complete_feed(self) -> Mapping[str, Any]:
        """Return the values of the inputs that the model has."""
        names = [value.name for value in fed_inputs(self.proto.graph)]
        return {name: self.feed[name] for name in names if name in self.feed}

    def with_model(self, model: Model, feed: Mapping[str, Any] | None = None) -> Candidate:
        """Return a candidate of another model, whose inner values are not recorded yet."""
        return replace(self, model=model, feed=self.feed if feed is None else feed, values=Values(), path="")
