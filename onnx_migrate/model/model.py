"""A model: its structure as protobuf, and references to its weights."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx

from onnx_migrate.model.payloads import FileStamp
from onnx_migrate.model.weights import Weights

__all__ = ["Model"]


@dataclass
class Model:
    """A structure to edit in place and the weights it refers to.

    `proto` is complete but for large tensor payloads, which are references (see `weights.py`).
    `name` is what messages call the model: its path, or "<bytes>", "<ModelProto>".
    `keepalive` holds what the references need to stay readable, such as a temporary directory.
    `origin` names the files it was read from, by path or URL: its own, then those of its external data.
    `stamp` is what its own file was then, None for bytes and protos.
    `load_seconds` is how long reading it took.
    """

    proto: onnx.ModelProto
    weights: Weights = field(default_factory=Weights)
    name: str = "<ModelProto>"
    keepalive: object = None
    origin: tuple[str, ...] = ()
    stamp: FileStamp | None = None
    load_seconds: float = 0.0

    @property
    def files(self) -> dict[str, Path]:
        """The files of `origin` on this machine, by their paths relative to the model's folder, its own first.

        For a model that was read from a URL these are the downloaded copies. Empty for bytes and protos.
        """
        own = self.weights.source
        if not self.origin or own is None:
            return {}
        folder, separator, _ = self.origin[0].rpartition("/")
        is_url = "://" in folder
        others = [
            name.removeprefix(folder + separator) if is_url else os.path.relpath(name, own.parent)
            for name in self.origin[1:]
        ]
        return {own.name: own, **{name: own.parent / name for name in others}}

    @property
    def file_bytes(self) -> int | None:
        """The size of the files that the model was read from, external data included; None if that is not known."""
        try:
            return sum(os.path.getsize(path) for path in self.files.values()) or None
        except OSError:  # moved or deleted since
            return None

    def copy(self) -> Model:
        """Return a second structure over the same weights; costs grow with the graph, not the weights."""
        proto = onnx.ModelProto()
        proto.CopyFrom(self.proto)
        return replace(self, proto=proto, weights=self.weights.copy())
