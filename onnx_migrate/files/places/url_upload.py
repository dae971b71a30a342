"""Sends a result to a URL, so that the object there is replaced as a whole or not at all.

The result is first written to a temporary folder. S3 (PutObject, CompleteMultipartUpload), Google Cloud Storage and Azure Blob
Storage have an atomic put, and `upload` uses it. They show an object only when all of it has arrived. An abandoned upload in
parts never becomes visible there. On other servers, `upload` sends the bytes to another name in the same folder, and then
renames the file.

No server can replace two objects at once. So the data of a model goes first, under a name that contains a digest of its
content. This overwrites no object that an older model refers to, and equal results have equal names. Then the model is sent.
The data of a replaced model stays, because somebody may be reading it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import posixpath
from pathlib import Path
from typing import Any

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.errors import SaveError
from onnx_migrate.files.equality import file_digest
from onnx_migrate.files.places import IN_PLACE
from onnx_migrate.files.places.url_download import SLOW
from onnx_migrate.model.tensors import tensors
from onnx_migrate.safe_open.transfers import StoppedError, Transfer
from onnx_migrate.url import basename, is_web, one_line_reason, open_file_system, same_place

__all__ = ["check_url", "upload"]

_ATOMIC_PUT = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"}


def check_url(url: str, *, source: str | None = None, in_place: bool = False) -> None:
    """Check a URL to write to, without asking the server.

    Raises SaveError (`cannot-write`, `is-directory`, `in-place`), and UsageError as `url.open_file_system` does.
    """
    if is_web(url):  # fsspec would POST
        raise SaveError(
            f"{url}: HTTP addresses can only be read",
            hint="write to a file, or to a URL of another protocol such as s3, gs, az, hf or sftp",
        )
    open_file_system(url)
    if basename(url) in ("", ".", ".."):
        raise SaveError(f"{url} is a directory", code="is-directory", hint="give the URL of a file in it")
    if source is not None and not in_place and same_place(source, url):
        raise SaveError(f"{url} is the source model itself", code="in-place", hint=IN_PLACE)


def upload(path: Path, url: str) -> None:
    """Send the model at `path`, and its data file if it has one, to `url`.

    Raises SaveError (`cannot-write`, `timed-out`) and UsageError.
    """
    system, target = open_file_system(url)
    data = path.with_name(f"{path.name}.data")
    try:
        if data.exists():
            name = f"{path.name}.{file_digest(data)}.data"
            _rename_data(path, data.name, name)
            _put_in_time(system, data, posixpath.join(posixpath.dirname(target), name))
        _put_in_time(system, path, target)
    except StoppedError as error:
        raise SaveError(f"{url}: cannot be written: {error}", code="timed-out", hint=Advice(SLOW)) from error
    except Exception as error:  # raised by the library of any protocol
        raise SaveError(f"{url}: cannot be written: {one_line_reason(error)}") from error


def _put_in_time(system: Any, path: Path, target: str) -> None:
    """Send a file within the time that its size allows. Raises StoppedError, and errors of the library."""
    size, transfer = path.stat().st_size, Transfer()
    transfer.run(lambda: _put(system, path, target, transfer), size=lambda: size)


def _put(system: Any, path: Path, target: str, transfer: Transfer) -> None:
    """Send a file to a path of an fsspec file system, atomically."""
    protocols = system.protocol
    if _ATOMIC_PUT & ({protocols} if isinstance(protocols, str) else set(protocols)):
        system.put_file(os.fspath(path), target, callback=transfer.callback())
        return
    import uuid  # which takes milliseconds

    folder = posixpath.dirname(target)
    temporary = posixpath.join(folder, f".onnx-migrate-{uuid.uuid4().hex}{path.suffix}")
    if system.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    system.makedirs(folder, exist_ok=True)
    try:
        system.put_file(os.fspath(path), temporary, callback=transfer.callback())
        transfer.check()
        system.mv(temporary, target)
        if system.exists(temporary):  # WebHDFS reports a refused rename as a success
            raise FileExistsError(errno.EEXIST, "the existing object could not be replaced")
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to report
            system.rm(temporary)
        raise


def _rename_data(path: Path, old: str, new: str) -> None:
    """Change the location of external data from `old` to `new` in the model at `path`, whose large payloads are all external."""
    proto = onnx.load(path, load_external_data=False)
    for tensor in tensors(proto):
        for entry in tensor.external_data:
            if entry.key == "location" and entry.value == old:
                entry.value = new
    path.write_bytes(proto.SerializeToString())
