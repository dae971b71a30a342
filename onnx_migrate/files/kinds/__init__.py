"""Objects of other libraries that hold a model, one file for each kind; a library is imported only for an object of it.

To add one, write a file here with a subclass of `ModelKind`, and an object of it as `KIND`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import Any, ClassVar

import onnx

from onnx_migrate.installed import objects_in
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import Weights

__all__ = ["ModelKind", "ReturnedKind", "kind_of", "kinds", "returned_kind"]


class ModelKind(ABC):
    """A kind of object: how to recognise one, how to read its structure, and how to give a result back as one."""

    title: ClassVar[str]
    """The kind in messages, such as "an onnx_ir.Model"."""
    by_attribute: ClassVar[bool] = False
    """Whether an attribute tells the kind: a graphsurgeon Graph prints an error if somebody asks it for an unknown attribute."""

    @abstractmethod
    def holds(self, source: object) -> bool:
        """Return whether an object is of this kind, without an import of its library."""

    @abstractmethod
    def structure(self, source: Any, weights: Weights) -> onnx.ModelProto:
        """Return the structure of the model, whose large tensors `weights` resolves. The object stays unchanged.

        Raises LoadError where its library cannot write the model.
        """


class ReturnedKind(ModelKind):
    """A kind of object as which the caller gets the result; for other sources the result is a ModelProto."""

    @abstractmethod
    def given_back(self, result: Model, source: Any) -> Any:
        """Return a result as a new object of the kind of `source`. Raises LoadError if a file with new weights is gone."""

    @abstractmethod
    def replace_content(self, source: Any, content: Any) -> None:
        """Give an object the content of another one of its kind, in place."""


@cache
def kinds() -> tuple[ModelKind, ...]:
    """Return the kinds of all files in this folder, those with an attribute of their own last."""
    return tuple(sorted(objects_in(__name__, "KIND"), key=lambda kind: kind.by_attribute))


def kind_of(source: object) -> ModelKind | None:
    """Return the kind of an object, None for other sources of a model."""
    return next((kind for kind in kinds() if kind.holds(source)), None)


def returned_kind(source: object | None) -> ReturnedKind | None:
    """Return the kind as which the result for a source is given back, None where it is a ModelProto."""
    kind = None if source is None else kind_of(source)
    return kind if isinstance(kind, ReturnedKind) else None
