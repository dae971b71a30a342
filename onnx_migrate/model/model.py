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

    `proto` is complete but for large tensor payloads, which are references (see `weights.py`).
    `name` is what messages call the model: its path, or "<bytes>", "<ModelProto>".
    `keepalive` holds what the references need to stay readable, such as a temporary directory.
    `origin` names the files it was read from, by path or URL: its own, then those of its external data.
    `stamp` is what its own file was then, None for bytes and protos.
    `load_seconds` is how long reading it took. `as_given` is the structure as it was read, where `proto` is that structure
    mended: what runs where a verification runs the model, which it knows by `proto`. `ir_model` is the onnx_ir.Model that
    it was read from, None for all else.
    """

    proto: onnx.ModelProto
    weights: Weights = field(default_factory=Weights)
    name: str = "<ModelProto>"
    keepalive: object = None
    origin: tuple[str, ...] = ()
    stamp: FileStamp | None = None
    load_seconds: float = 0.0
    as_given: onnx.ModelProto | None = None
    ir_model: Any = None

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
        return replace(self, proto=proto, weights=self.weights.copy(), as_given=None)


M = TypeVar("M")
N = TypeVar("N")


@dataclass(frozen=True)
class Segment(Generic[M]):
    """Two models of which `result` must compute the same as `original`, and the one between them.

    `unsimplified` is the model after all changes but those of an optional pass, which may be the result itself; None where
    it is not known which changes were made. If `exact`, its outputs must be bit for bit the original's. How far `other` is from
    the original is measured, and decides nothing. If `other_numbers`, the user asked for other numbers before the segment:
    simplification may then move outputs by as much as the coarsest type of the original rounds. Without `full_range`, callers
    give fewer numbers than the types of the inputs hold, as the user asked for narrower inputs.
    """

    original: M
    result: M
    unsimplified: M | None = None
    exact: bool = False
    other: M | None = None
    other_numbers: bool = False
    full_range: bool = True

    def models(self) -> Iterator[M]:
        """Yield the models of the segment, each as often as it stands in it."""
        for model in (self.original, self.result, self.unsimplified, self.other):
            if model is not None:
                yield model

    def map(self, change: Callable[[M], N]) -> Segment[N]:
        """Return the segment with each of its models changed, one that stands in several places once."""
        made: dict[int, N] = {}

        def changed(model: M | None) -> N | None:
            if model is None:
                return None
            if id(model) not in made:
                made[id(model)] = change(model)
            return made[id(model)]

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
