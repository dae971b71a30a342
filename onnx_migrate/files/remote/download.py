"""A model by URL: a copy of it, and of the files its weights lie in, in a temporary folder.

What reads weights, here and in ONNX Runtime, maps files. So a model that lies elsewhere is fetched, block by block,
and then is a model like any other. Of its folder only those files are fetched that its tensors name.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files.temporary import Scratch
from onnx_migrate.url import bare, basename, is_url, is_web, opened, plain, said

__all__ = ["Fetched", "at_hand"]


class Fetched(os.PathLike[str]):
    """The copy of the model at `url`, a path that is there as long as this object.

    Raises LoadError (`no-such-file`, `is-directory`, `cannot-read`), and UsageError for a URL that nothing installed
    understands.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._system, path = opened(url)
        self._name = basename(url)
        if self._name in ("", ".", ".."):
            raise LoadError(f"{url} is a directory", code="is-directory", hint="give the .onnx file in it")
        self._folder = posixpath.dirname(bare(path))
        self._scratch = Scratch()
        try:
            self._system.get_file(path, os.fspath(self))
        except FileNotFoundError as error:
            raise LoadError(f"{url}: no such file", code="no-such-file") from error
        except Exception as error:  # of whatever library the protocol is spoken by
            raise LoadError(f"{url}: cannot be read: {said(error)}", code="cannot-read") from error

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return str(self._scratch.path / self._name)

    def bring(self, tensors: Iterable[TensorProto]) -> None:
        """Fetch the files that the tensors' external data lies in, those that are not here yet.

        Raises LoadError (`outside-folder`, `missing-data`, `cannot-read`).
        """
        for tensor in tensors:
            for entry in tensor.external_data:
                if entry.key == "location" and tensor.data_location == TensorProto.EXTERNAL and entry.value:
                    self._bring(tensor.name, entry.value)

    def _bring(self, tensor: str, location: str) -> None:
        target, normal = os.path.join(self._scratch.path, location), posixpath.normpath(location)
        if not self._holds(target):
            raise LoadError(
                f"{self.url}: tensor {tensor!r} lies in {location!r}, outside the model's folder",
                code="outside-folder",
                hint="move the file beside the model and make the location relative",
            )
        if os.path.exists(target):
            return
        remote = posixpath.join(self._folder, quote(normal) if is_web(self.url) else normal)
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self._system.get_file(remote, target)
        except FileNotFoundError as error:
            raise LoadError(
                f"{self.url}: tensor {tensor!r} lies in {location!r}, which is not there",
                code="missing-data",
                hint="external data belongs beside the model",
            ) from error
        except Exception as error:
            raise LoadError(
                f"{self.url}: tensor {tensor!r} lies in {location!r}, which cannot be read: {said(error)}",
                code="cannot-read",
            ) from error

    def _holds(self, target: str) -> bool:
        """Tell whether a path, as this system reads it, lies in the temporary folder."""
        root = os.path.realpath(self._scratch.path)
        return "\0" not in target and os.path.realpath(target).startswith(root + os.sep)

    def url_of(self, path: Path) -> str:
        """Return the URL of a file of the copy."""
        return self.told(os.path.normpath(path).replace(os.sep, "/"))

    def told(self, text: str) -> str:
        """Return a message with the place the model came from for the place of the copy."""
        return text.replace(str(self._scratch.path), self.url.rpartition("/")[0])


def at_hand(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a path to a model: what a URL names is fetched, once, to be read as often as need be."""
    if isinstance(source, Fetched):
        return source
    name = plain(os.fspath(source))
    return Fetched(name) if is_url(name) else name
