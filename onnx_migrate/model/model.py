"""A model: its structure as protobuf, and references to its weights; and two models that must compute the same."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import onnx

from onnx_migrate.model.payloads import FileStamp
from onnx_migrate.model.weights import Weights

__all__ = ["Model", "Segment"]


@dataclass
class Model:
    """A structure to edit in place and the weights it refers to.

    - `proto` is complete except for large tensor payloads, which are references (see `weights.py`).
    - `name` is the model's name in messages: its path, or "<bytes>", "<ModelProto>".
    - `keepalive` holds the objects that keep the references readable, such as a temporary directory.
    - `origin` names the files that the model came from, by path or URL: its own, then those of its external data.
    - `stamp` is the state of its own file when it was read, None for bytes and protos.
    - `load_seconds` is the time that the reading took.
    - `as_given` is the structure before repairs, if onnx-migrate repaired `proto`. A verification of `proto` runs `as_given`.
    - `source_object` is the object that the model came from, if results are given back as one of its kind (`files.kinds`).
    """

    proto: onnx.ModelProto
    weights: Weights = field(default_factory=Weights)
    name: str = "<ModelProto>"
    keepalive: object = None
    origin: tuple[str, ...] = ()
    stamp: FileStamp | None = None
    load_seconds: float = 0.0
    as_given: onnx.ModelProto | None = None
    source_object: Any = None

    @property
    def files(self) -> dict[str, Path]:
        """The files of `origin` on this machine, by their paths relative to the model's folder, its own first.

        For a model from a URL these are the downloaded copies. Models from bytes and protos have none.
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
        return replace(self, proto=proto, weights=self.weights.copy(), as_given=None)


M = TypeVar("M")
N = TypeVar("N")


@dataclass(frozen=True)
class Segment(Generic[M]):
    """Two models that must compute the same, `original` and `result`, and the one between them.

    `unsimplified` is the model after all changes except those of optional passes; it may be the result itself. It is
    None if the changes are not known. If `exact`, the outputs of the result must equal the original's bit for bit.

    The report states how far `other` is from the original, and this decides nothing. If `other_numbers`, the user asked
    for other numbers before the segment. Simplification may then move outputs by the rounding of the original's
    coarsest type.

    Without `full_range`, callers give fewer numbers than the types of the inputs hold, because the user asked for
    narrower inputs.
    """

    original: M
    result: M
    unsimplified: M | None = None
    exact: bool = False
    other: M | None = None
    other_numbers: bool = False
    full_range: bool = True

    def models(self) -> Iterator[M]:
        """Yield the models of the segment; a model with two roles comes twice."""
        for model in (self.original, self.result, self.unsimplified, self.other):
            if model is not None:
                yield model

    def map(self, change: Callable[[M], N]) -> Segment[N]:
        """Return the segment with each of its models changed; a model with several roles is changed once."""
        changed_models: dict[int, N] = {}

        def changed(model: M | None) -> N | None:
            if model is None:
                return None
            # By identity, because one model may be the original and the unsimplified result.
            if id(model) not in changed_models:
                changed_models[id(model)] = change(model)
            return changed_models[id(model)]

        original, result = changed(self.original), changed(self.result)
        assert original is not None
        assert result is not None
        return Segment(
            original,
            result,
            changed(self.unsimplified),
            self.exact,
            changed(self.other),
            self.other_numbers,
            self.full_range,
        )
