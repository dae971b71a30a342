"""Downloads a model from a URL, and the files of its external data, to a temporary folder.

This package and ONNX Runtime read weights by mapping files into memory. So a model at a URL is copied, block by block, and is
then a local model. From its folder, only the files that its tensors name are downloaded.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError
from onnx_migrate.files.file_signatures import HEAD, may_be_model, not_a_model
from onnx_migrate.files.places import LocalCopy
from onnx_migrate.files.wire.protobuf import Malformed
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.safe_open.transfers import StalledError, StoppedError, Transfer
from onnx_migrate.url import (
    basename,
    is_web,
    one_line_reason,
    open_file_system,
    without_query,
)

__all__ = ["SLOW", "DownloadedModel"]


SLOW = "--timeout, in Python timeout, allows more seconds"
"""The hint for a transfer that takes too long."""

_STALLED = "try again, or download the file and give its path"


class DownloadedModel(LocalCopy):
    """The local copy of the model at `url`: a path that exists as long as this object.

    Raises LoadError (`no-such-file`, `is-directory`, `cannot-read`, `timed-out`), and UsageError for a URL that no
    installed package can open.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._system, path = open_file_system(url)
        self._name = basename(url)
        if self._name in ("", ".", ".."):
            raise LoadError(
                f"{url} is a directory", code="is-directory", hint="give the URL of the .onnx file in it"
            )
        # A query is no part of the path of a file beside it.
        self._folder = posixpath.dirname(without_query(path))
        self._temporary = TemporaryFolder()
        with _read(f"{url}: ", f"{url}: no such file", code="no-such-file", hint="check the URL"):
            self._get(path, os.fspath(self), enough=self._is_no_model)
        if self._is_no_model():
            raise not_a_model(Malformed("it begins otherwise", 0), self._head(), os.path.getsize(self), url)

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return str(self._temporary.path / self._name)

    def download_external_data(self, tensors: Iterable[TensorProto]) -> None:
        """Download the files that hold the tensors' external data, except those that are there already.

        Raises LoadError (`outside-folder`, `missing-data`, `cannot-read`, `timed-out`).
        """
        for tensor in tensors:
            for entry in tensor.external_data:
                if entry.key == "location" and tensor.data_location == TensorProto.EXTERNAL and entry.value:
                    self._download(tensor.name, entry.value)

    def _download(self, tensor: str, location: str) -> None:
        """Download the file with the data of `tensor`, at `location` relative to the model's folder."""
        target, normal = os.path.join(self._temporary.path, location), posixpath.normpath(location)
        if not self._is_in_folder(target):
            raise LoadError(
                f"{self.url}: the data of tensor {tensor!r} is at {location!r}, outside the model's folder",
                code="outside-folder",
                hint="move the file beside the model and make the location relative",
            )
        # Several tensors may share one file.
        if os.path.exists(target):
            return
        remote = posixpath.join(self._folder, quote(normal) if is_web(self.url) else normal)
        description = f"{self.url}: the data of tensor {tensor!r} is at {location!r}, which "
        hint = "upload the file of external data beside the model"
        with _read(description, f"{description}does not exist", code="missing-data", hint=hint):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            self._get(remote, target)

    def _get(self, remote: str, target: str, *, enough: Callable[[], bool] = lambda: False) -> None:
        """Download a file, within the available time and space. Raises StoppedError, and errors of the library."""
        transfer = Transfer()

        def size() -> int:
            try:
                return os.path.getsize(target)
            except FileNotFoundError:
                return 0

        transfer.run(
            lambda: self._system.get_file(remote, target, callback=transfer.callback()),
            size=size,
            largest=shutil.disk_usage(self._temporary.path).free * 3 // 4,
            enough=enough,
            may_stall=False,
        )

    def _is_no_model(self) -> bool:
        """Return whether the first bytes of the copy have come, and are not those of a model: then the download can stop."""
        head = self._head()
        return len(head) == HEAD and not may_be_model(head)

    def _head(self) -> bytes:
        """Return the first bytes of the copy, or fewer if only these have come."""
        try:
            with open(self, "rb") as file:
                return file.read(HEAD)
        except OSError:
            return b""

    def _is_in_folder(self, target: str) -> bool:
        """Return whether a path, with links resolved, is in the temporary folder."""
        root = os.path.realpath(self._temporary.path)
        return "\0" not in target and os.path.realpath(target).startswith(root + os.sep)

    def url_of(self, path: Path) -> str:
        """Return the URL that a file of the copy was downloaded from."""
        return self.with_url(os.path.normpath(path).replace(os.sep, "/"))

    def with_url(self, text: str) -> str:
        """Return a message with the URL of the model's folder instead of the temporary folder."""
        return text.replace(str(self._temporary.path), self.url.rpartition("/")[0])


@contextmanager
def _read(subject: str, missing: str, *, code: str, hint: str) -> Iterator[None]:
    """Turn errors of a download into LoadError: for a missing file, with the message `missing`, `code` and `hint`."""
    try:
        yield
    except FileNotFoundError as error:
        raise LoadError(missing, code=code, hint=hint) from error
    except StoppedError as error:
        helps = _STALLED if isinstance(error, StalledError) else SLOW
        raise LoadError(f"{subject}cannot be read: {error}", code="timed-out", hint=Advice(helps)) from error
    except Exception as error:  # raised by the library of any protocol
        raise LoadError(f"{subject}cannot be read: {one_line_reason(error)}", code="cannot-read") from error
