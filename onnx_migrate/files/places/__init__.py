"""The places of models that are no files on this machine: one file for each kind of place, and its parts.

To add one, write a file here with a subclass of `Place`, and an object of it as `PLACE`. Its libraries are imported only for a
name in it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from onnx import TensorProto

from onnx_migrate.errors import UsageError
from onnx_migrate.installed import objects_in
from onnx_migrate.url import is_url, resolve_file_url

__all__ = ["IN_PLACE", "LocalCopy", "Place", "ensure_local", "place_of"]

IN_PLACE = "pass --in-place (in Python in_place=True) to replace it"
"""The hint for an output that is the source."""


class LocalCopy(os.PathLike[str]):
    """The path of a local copy of a model, which exists as long as this object. Its text is the model's own name."""

    @abstractmethod
    def download_external_data(self, tensors: Iterable[TensorProto]) -> None:
        """Copy the files that hold the tensors' external data, except those that are there already.

        Raises LoadError (`outside-folder`, `missing-data`, `cannot-read`, `timed-out`).
        """

    @abstractmethod
    def url_of(self, path: Path) -> str:
        """Return the name that a file of the copy has in the place."""

    @abstractmethod
    def with_url(self, text: str) -> str:
        """Return a message with the name of the model's folder instead of that of the copy's."""


class Place(ABC):
    """A kind of place whose names look different from paths."""

    @abstractmethod
    def holds(self, name: str) -> bool:
        """Return whether a name is one of this place."""

    @abstractmethod
    def local_copy(self, name: str) -> LocalCopy:
        """Return a local copy of the model with this name. Raises LoadError, and UsageError if no package can open the name."""

    @abstractmethod
    def check_target(self, name: str, *, source: str | None, in_place: bool) -> None:
        """Check a name to write to, before the work; `source` is that of the model.

        Raises SaveError (`cannot-write`, `is-directory`, `in-place`), and UsageError if no package can open the name.
        """

    @abstractmethod
    def send(self, path: Path, name: str) -> None:
        """Write the model at a local path, with its data file, to a name. Raises SaveError (`cannot-write`, `timed-out`)."""


@cache
def _places() -> tuple[Place, ...]:
    return objects_in(__name__, "PLACE")


def place_of(name: str) -> Place | None:
    """Return the place of a name, None for a path on this machine. Raises UsageError for a URL that nothing installed opens."""
    if not is_url(name):
        return None
    place = next((place for place in _places() if place.holds(name)), None)
    if place is None:
        raise UsageError(f"{name}: this installation opens no URLs", hint="give the path of a file")
    return place


def ensure_local(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a local path to a model; one in another place is copied, and can then be read any number of times."""
    if isinstance(source, LocalCopy):
        return source
    name = resolve_file_url(os.fspath(source))
    place = place_of(name)
    return place.local_copy(name) if place else name
