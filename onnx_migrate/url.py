"""URLs of models: `file:` URLs, and those of the protocols that fsspec supports (s3, gs, hf, memory, ...).

fsspec is imported when a URL is first opened, and not before.
"""

from __future__ import annotations

import errno
import os
import re
from typing import Any

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open.paths import real_path

__all__ = [
    "Identity",
    "absolute",
    "basename",
    "identity",
    "is_url",
    "is_web",
    "join",
    "one_line_reason",
    "open_file_system",
    "resolve_file_url",
    "same_place",
    "without_query",
]

Identity = tuple[object, str]
"""A file system (an empty string for this machine's) and a path in it."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # a single letter is a drive of Windows
_LOCAL = ("file", "local")


def absolute(path: str | os.PathLike[str]) -> str:
    """Return the absolute path of a file.

    Raises UsageError, code `no-such-file`, for a relative one where somebody has deleted the working folder.
    """
    try:
        return os.path.abspath(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"{os.fspath(path)}: no such file: the working folder of this program was deleted",
            code="no-such-file",
            hint="give an absolute path, or change to a folder that exists",
        ) from error


def is_url(name: str) -> bool:
    """Return whether `name` is a URL other than a `file:` URL."""
    scheme = _SCHEME.match(name)
    return scheme is not None and scheme[1].lower() not in _LOCAL


def resolve_file_url(name: str) -> str:
    """Return the path that a `file:` URL names, and any other name unchanged. Raises UsageError for another host's file."""
    scheme = _SCHEME.match(name)
    if scheme is None or scheme[1].lower() not in _LOCAL:
        return name
    host, slash, rest = name[scheme.end() :].partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"{name} names a file on the host {host!r}; a file: URL can only name a file of this machine",
            hint="an absolute path takes three slashes: file:///folder/model.onnx",
        )
    from urllib.request import url2pathname

    return url2pathname(f"/{rest}")


def open_file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for `url`, and the path of `url` in it.

    Raises UsageError if fsspec or the package of the protocol is not installed, or cannot interpret the URL.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(
            f"{url}: URLs need fsspec, which is not installed", hint="run pip install 'onnx-migrate[url]'"
        ) from error
    if "::" in url:
        raise UsageError(
            f"{url} chains protocols by '::', which is not supported", hint="give a URL of one protocol"
        )
    try:
        system, path = url_to_fs(url, **_options(url))
    except ImportError as error:
        raise UsageError(f"{url}: a package for this protocol is not installed", hint=str(error)) from error
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from error
    except Exception as error:  # raised by the library of any protocol, for example for its settings
        raise UsageError(f"{url}: cannot be opened: {one_line_reason(error)}") from error
    return system, path


def _options(url: str) -> dict[str, Any]:
    """Return the additional options of fsspec for a URL."""
    if not is_web(url):
        return {}
    try:
        from aiohttp import ClientTimeout  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return {}
    # Its own limit is 300 seconds for a file, however large that is and however fast it comes.
    return {"client_kwargs": {"timeout": ClientTimeout(total=None)}}


_NO_FILE = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
"""Errors of looking up a path that leads to no file."""


def identity(name: str) -> Identity:
    """Return a value that is equal for two names of one file or object; the parts of its path are separated by /."""
    name = resolve_file_url(name)
    if not is_url(name):
        return "", real_path(absolute(name)).replace(os.sep, "/")
    system, path = open_file_system(name)
    return system, path.rstrip("/")


def same_place(a: str, b: str) -> bool:
    """Return whether two paths lead to the same existing file, or two URLs to the same object.

    Raises OSError if the system cannot tell, for example after an I/O error. The caller must then not treat them as two files.
    """
    if is_url(a) or is_url(b):
        return is_url(a) and is_url(b) and identity(a) == identity(b)
    try:
        return os.path.samefile(a, b)
    except ValueError:  # a null character
        return False
    except OSError as error:
        if error.errno in _NO_FILE:
            return False
        raise


def is_web(url: str) -> bool:
    """Return whether a URL is an HTTP address: it can only be read, and may have a query after its path."""
    return url.lower().startswith(("http://", "https://"))


def without_query(url: str) -> str:
    """Return a URL without query and fragment if it is an HTTP address, else unchanged."""
    return re.split("[?#]", url)[0] if is_web(url) else url


def basename(url: str) -> str:
    """Return the last part of a URL's path."""
    return without_query(url).partition("://")[2].rpartition("/")[2]


def join(folder: str, relative: str) -> str:
    """Return a name below a folder, which is a path or a URL."""
    if not is_url(folder):
        return os.path.join(folder, relative)
    return folder + "/" * (not folder.endswith("/")) + relative.replace(os.sep, "/")


def one_line_reason(error: BaseException) -> str:
    """Return the message of an error of a file system as one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(f"{type(error).__name__}: {error}".split())
