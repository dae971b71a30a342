"""A result by URL: written whole in a temporary folder, then sent, so that the object appears whole or not at all.

Where a put is one atomic step it is used as it is: S3 (PutObject, CompleteMultipartUpload), Google Cloud Storage and
Azure Blob Storage show an object when all of it is there, and what is sent in parts and then given up is never shown.
Anywhere else the bytes go to a name of their own in the same folder, and are then moved.

Two objects cannot be put at once. So the data of a model goes first, under a name made of its content: no object that
an older model refers to is written over, and the same result has the same names. Then comes the model. The data of a
model that was replaced is left where it is, because somebody may be reading it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
import uuid
from pathlib import Path
from typing import Any

import onnx

from onnx_migrate.errors import SaveError
from onnx_migrate.files.digest import file_digest
from onnx_migrate.model.weights import tensors
from onnx_migrate.url import basename, is_web, one_line_reason, open_file_system, same_place

__all__ = ["check_url", "upload"]

_ATOMIC = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"}


def check_url(url: str, *, source: str | None = None, in_place: bool = False) -> None:
    """Refuse a URL that cannot be written to, or must not: that of the model itself. Asks nothing of the server.

    Raises SaveError (`cannot-write`, `is-directory`, `in-place`), and UsageError as `url.open_file_system` does.
    """
    if is_web(url):  # fsspec would POST
        raise SaveError(f"{url}: HTTP is only read", hint="s3, gs, az, hf, sftp and others are written to")
    open_file_system(url)
    if basename(url) in ("", ".", ".."):
        raise SaveError(f"{url} is a directory", code="is-directory", hint="give a file name in it")
    if source is not None and not in_place and same_place(source, url):
        raise SaveError(f"{url} is the model itself", code="in-place", hint="--in-place allows to replace it")


def upload(path: Path, url: str) -> None:
    """Send the model at `path`, and its data file if it has one, to `url`. Raises SaveError."""
    system, target = open_file_system(url)
    data = path.with_name(f"{path.name}.data")
    try:
        if data.exists():
            name = f"{path.name}.{file_digest(data)}.data"
            _refer(path, data.name, name)
            _put(system, data, posixpath.join(posixpath.dirname(target), name))
        _put(system, path, target)
    except Exception as error:  # of whatever library the protocol is spoken by
        raise SaveError(f"{url}: cannot be written: {one_line_reason(error)}") from error


def _put(system: Any, path: Path, target: str) -> None:
    given = system.protocol
    if _ATOMIC & ({given} if isinstance(given, str) else set(given)):
        system.put_file(os.fspath(path), target)
        return
    folder = posixpath.dirname(target)
    aside = posixpath.join(folder, f".onnx-migrate-{uuid.uuid4().hex}{path.suffix}")
    if system.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    system.makedirs(folder, exist_ok=True)
    try:
        system.put_file(os.fspath(path), aside)
        system.mv(aside, target)
        if system.exists(aside):  # WebHDFS answers a rename it refuses like one it does
            raise FileExistsError(errno.EEXIST, "what is there could not be replaced")
    except BaseException:
        with contextlib.suppress(Exception):  # gone, or out of reach: the first error is the one to tell
            system.rm(aside)
        raise


def _refer(path: Path, old: str, new: str) -> None:
    """Let the model at `path`, all of whose large weights lie in a data file, name that otherwise."""
    proto = onnx.load(path, load_external_data=False)
    for tensor in tensors(proto):
        for entry in tensor.external_data:
            if entry.key == "location" and entry.value == old:
                entry.value = new
    path.write_bytes(proto.SerializeToString())
