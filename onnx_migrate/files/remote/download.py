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
from onnx_migrate.files.temporary import TemporaryFolder
from onnx_migrate.url import (
    basename,
    is_url,
    is_web,
    one_line_reason,
    open_file_system,
    resolve_file_url,
    without_query,
)

__all__ = ["DownloadedModel", "ensure_local"]


class DownloadedModel(os.PathLike[str]):
    """The copy of the model at `url`, a path that is there as long as this object.

    Raises LoadError (`no-such-file`, `is-directory`, `cannot-read`), and UsageError for a URL that nothing installed
    understands.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._system, path = open_file_system(url)
        self._name = basename(url)
        if self._name in ("", ".", ".."):
            raise LoadError(f"{url} is a directory", code="is-directory", hint="give the .onnx file in it")
        self._folder = posixpath.dirname(without_query(path))
        self._temporary = TemporaryFolder()
        try:
            self._system.get_file(path, os.fspath(self))
        except FileNotFoundError as error:
            raise LoadError(f"{url}: no such file", code="no-such-file") from error
        except Exception as error:  # of whatever library the protocol is spoken by
            raise LoadError(f"{url}: cannot be read: {one_line_reason(error)}", code="cannot-read") from error

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return str(self._temporary.path / self._name)

    def download_external_data(self, tensors: Iterable[TensorProto]) -> None:
        """Fetch the files that the tensors' external data lies in, those that are not here yet.

        Raises LoadError (`outside-folder`, `missing-data`, `cannot-read`).
        """
        for tensor in tensors:
            for entry in tensor.external_data:
                if entry.key == "location" and tensor.data_location == TensorProto.EXTERNAL and entry.value:
                    self._download(tensor.name, entry.value)

    def _download(self, tensor: str, location: str) -> None:
        target, normal = os.path.join(self._temporary.path, location), posixpath.normpath(location)
        if not self._is_in_folder(target):
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
                f"{self.url}: tensor {tensor!r} lies in {location!r}, which cannot be read: {one_line_reason(error)}",
                code="cannot-read",
            ) from error

    def _is_in_folder(self, target: str) -> bool:
        """Tell whether a path, as this system reads it, lies in the temporary folder."""
        root = os.path.realpath(self._temporary.path)
        return "\0" not in target and os.path.realpath(target).startswith(root + os.sep)

    def url_of(self, path: Path) -> str:
        """Return the URL of a file of the copy."""
        return self.with_url(os.path.normpath(path).replace(os.sep, "/"))

    def with_url(self, text: str) -> str:
        """Return a message with the place the model came from for the place of the copy."""
        return text.replace(str(self._temporary.path), self.url.rpartition("/")[0])


def ensure_local(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a path to a model: what a URL names is fetched, once, to be read as often as need be."""
    if isinstance(source, DownloadedModel):
        return source
    name = resolve_file_url(os.fspath(source))
    return DownloadedModel(name) if is_url(name) else name
