"""Names of models that are no paths: `file:` URLs, and URLs of what fsspec reaches (s3, gs, hf, memory, ...).

A leaf that imports fsspec when a URL is first opened, and nothing before.
"""

from __future__ import annotations

import os
import re
from typing import Any

from onnx_migrate.errors import UsageError

__all__ = [
    "Identity",
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
"""A file system and a path in it."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # of one letter it is a drive of Windows
_LOCAL = ("file", "local")


def is_url(name: str) -> bool:
    """Tell whether `name` is a URL of something that is not a file of this machine."""
    scheme = _SCHEME.match(name)
    return scheme is not None and scheme[1].lower() not in _LOCAL


def resolve_file_url(name: str) -> str:
    """Return the path that a `file:` URL names; all else as it is. Raises UsageError for a file of another host."""
    scheme = _SCHEME.match(name)
    if scheme is None or scheme[1].lower() not in _LOCAL:
        return name
    host, slash, rest = name[scheme.end() :].partition("/")
    if host not in ("", "localhost") or not slash:
        raise UsageError(
            f"{name} names a file of the host {host!r}", hint="file:///folder/model.onnx is absolute"
        )
    from urllib.request import url2pathname

    return url2pathname(f"/{rest}")


def open_file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for `url`, and what it calls it.

    Raises UsageError where fsspec or the protocol's package is not installed, or the URL says nothing to them.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(
            f"{url}: URLs need fsspec, which is not installed", hint="pip install 'onnx-migrate[url]'"
        ) from error
    if "::" in url:
        raise UsageError(f"{url} is a chain of protocols, and one at a time is understood")
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        raise UsageError(f"{url}: a package for this protocol is not installed", hint=str(error)) from error
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from error
    except Exception as error:  # whatever a protocol's package has to say of its settings
        raise UsageError(f"{url}: cannot be reached: {one_line_reason(error)}") from error
    return system, path


def identity(name: str) -> Identity:
    """Return what two names of one file, or of one object, have in common; parts of the path lie between /."""
    name = resolve_file_url(name)
    if not is_url(name):
        return "", os.path.realpath(name).replace(os.sep, "/")
    system, path = open_file_system(name)
    return system, path.rstrip("/")


def same_place(a: str, b: str) -> bool:
    """Tell whether two paths lead to one file that is there, or two URLs to one object."""
    if is_url(a) or is_url(b):
        return is_url(a) and is_url(b) and identity(a) == identity(b)
    return os.path.exists(a) and os.path.exists(b) and os.path.samefile(a, b)


def is_web(url: str) -> bool:
    """Tell whether a URL is of HTTP: what stands there is only read, and a query is no part of its path."""
    return url.lower().startswith(("http://", "https://"))


def without_query(url: str) -> str:
    """Return a URL without the query that one of HTTP may have."""
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
    """Return what an error of a file system says, in a line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(f"{type(error).__name__}: {error}".split())
