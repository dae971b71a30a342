"""The one thing that flows through a migration: a model's structure, and where its weights are."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx

from onnx_migrate.model.weights import Weights

__all__ = ["Model"]


@dataclass
class Model:
    """A structure to edit in place and the weights it refers to.

    `proto` is complete but for large tensor payloads, which are references (see `weights.py`).
    `name` is what messages call the model: its path, or "<bytes>", "<ModelProto>".
    `keepalive` holds what the references need to stay readable, such as a temporary directory.
    `origin` names the files it was read from, by path or URL: its own, then those of its external data.
    """

    proto: onnx.ModelProto
    weights: Weights = field(default_factory=Weights)
    name: str = "<ModelProto>"
    keepalive: object = None
    origin: tuple[str, ...] = ()

    def copy(self) -> Model:
        """Return a second structure over the same weights; costs grow with the graph, not the weights."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        return Model(proto, self.weights.copy(), self.name, self.keepalive, self.origin)
