"""Downloads a model from a URL, and the files of its external data, to a temporary folder.

What reads weights, in this package and in ONNX Runtime, maps files into memory. So a model at a URL is copied, block
by block, and is then a local model. Of its folder only the files that its tensors name are downloaded.
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
    """The local copy of the model at `url`: a path that exists as long as this object.

    Raises LoadError (`no-such-file`, `is-directory`, `cannot-read`), and UsageError for a URL that no installed package
    can open.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._system, path = open_file_system(url)
        self._name = basename(url)
        if self._name in ("", ".", ".."):
            raise LoadError(
                f"{url} is a directory", code="is-directory", hint="give the URL of the .onnx file in it"
            )
        self._folder = posixpath.dirname(without_query(path))
        self._temporary = TemporaryFolder()
        try:
            self._system.get_file(path, os.fspath(self))
        except FileNotFoundError as error:
            raise LoadError(f"{url}: no such file", code="no-such-file", hint="check the URL") from error
        except Exception as error:  # raised by the library of any protocol
            raise LoadError(f"{url}: cannot be read: {one_line_reason(error)}", code="cannot-read") from error

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return str(self._temporary.path / self._name)

    def download_external_data(self, tensors: Iterable[TensorProto]) -> None:
        """Download the files that hold the tensors' external data, except those that are there already.

        Raises LoadError (`outside-folder`, `missing-data`, `cannot-read`).
        """
        for tensor in tensors:
            for entry in tensor.external_data:
                if entry.key == "location" and tensor.data_location == TensorProto.EXTERNAL and entry.value:
                    self._download(tensor.name, entry.value)

    def _download(self, tensor: str, location: str) -> None:
        """Download the file at `location`, relative to the model's folder, that the data of `tensor` is in."""
        target, normal = os.path.join(self._temporary.path, location), posixpath.normpath(location)
        if not self._is_in_folder(target):
            raise LoadError(
                f"{self.url}: the data of tensor {tensor!r} is at {location!r}, outside the model's folder",
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
                f"{self.url}: the data of tensor {tensor!r} is at {location!r}, which does not exist",
                code="missing-data",
                hint="upload the file of external data beside the model",
            ) from error
        except Exception as error:
            raise LoadError(
                f"{self.url}: the data of tensor {tensor!r} is at {location!r}, which cannot be read: {one_line_reason(error)}",
                code="cannot-read",
            ) from error

    def _is_in_folder(self, target: str) -> bool:
        """Return whether a path, with links resolved, is in the temporary folder."""
        root = os.path.realpath(self._temporary.path)
        return "\0" not in target and os.path.realpath(target).startswith(root + os.sep)

    def url_of(self, path: Path) -> str:
        """Return the URL that a file of the copy was downloaded from."""
        return self.with_url(os.path.normpath(path).replace(os.sep, "/"))

    def with_url(self, text: str) -> str:
        """Return a message in which the temporary folder is replaced by the URL of the model's folder."""
        return text.replace(str(self._temporary.path), self.url.rpartition("/")[0])


def ensure_local(source: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a local path to a model; one at a URL is downloaded, and can then be read any number of times."""
    if isinstance(source, DownloadedModel):
        return source
    name = resolve_file_url(os.fspath(source))
    return DownloadedModel(name) if is_url(name) else name
