"""Which models a batch has, and where each result goes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import NoReturn

from onnx_migrate.errors import UsageError
from onnx_migrate.url import (
    Identity,
    basename,
    identity,
    is_url,
    join,
    one_line_reason,
    open_file_system,
    resolve_file_url,
    without_query,
)

__all__ = ["find", "place"]

SUFFIX = ".onnx"


def find(sources: Iterable[str | os.PathLike[str]]) -> list[tuple[str, str]]:
    """Return each model's path or URL, and its path below the folder it was found in, in the order given, then by name.

    A source is a file, a folder, of which all files named *.onnx are taken, or a glob pattern (** goes through
    folders), by path or by URL. A file named outright is taken whatever its name is, and also if it is not there, which
    is then its own failure. Files and folders whose names begin with a dot are passed over.
    Raises UsageError for a folder or a pattern without any, for a folder that cannot be listed, and for a URL that
    cannot be reached.
    """
    found: dict[str, str] = {}
    for given in sources:
        source = resolve_file_url(os.fspath(given))
        if is_url(source):
            inside = _elsewhere(source)
        elif os.path.isdir(source):
            inside = [(path, os.path.relpath(path, source)) for path in _walk(source)]
        elif not os.path.exists(source) and glob.has_magic(source):
            root = _fixed_part(source)
            paths = sorted(path for path in glob.glob(source, recursive=True) if os.path.isfile(path))
            inside = [(path, os.path.relpath(path, root)) for path in paths]
        else:
            inside = [(source, os.path.basename(source))]
        if not inside:
            raise UsageError(f"there is no model in {source}", hint=f"files named *{SUFFIX} are looked for")
        for path, relative in inside:
            found.setdefault(path, relative)
    return list(found.items())


def place(found: Iterable[tuple[str, str]], out_dir: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Return each model's path, and where its result goes below `out_dir`.

    Raises UsageError for two models with one place, and for a model that would be written over.
    """
    pairs: list[tuple[str, str]] = []
    taken: dict[str, str] = {}
    folder = resolve_file_url(os.fspath(out_dir))
    out = identity(folder)
    found = [(path, relative) for path, relative in found if not _result(path, relative, out)]
    models = {identity(path) for path, _ in found}
    for path, relative in found:
        target = join(folder, relative)
        if identity(target) in models:
            raise UsageError(f"{target} is one of the models", hint="give another folder, or --in-place")
        other = taken.setdefault(os.path.normpath(target), path)
        if other != path:
            raise UsageError(
                f"{other} and {path} would both be written to {target}", hint="give the folder above both"
            )
        pairs.append((path, target))
    return pairs


def _result(path: str, relative: str, out: Identity) -> bool:
    """Tell whether a model is what an earlier run wrote to `out`, a folder within the source it was found in."""
    root = identity(path.removesuffix(relative) or ".")
    return _below(identity(path), out) and not _below(root, out)


def _below(path: Identity, folder: Identity) -> bool:
    return path == folder or (path[0] == folder[0] and path[1].startswith(folder[1] + "/"))


def _elsewhere(source: str) -> list[tuple[str, str]]:
    """Return the models that a URL names, as `find` does; nothing is asked of the server for one that ends in .onnx."""
    magic = glob.has_magic(without_query(source))
    if without_query(source).endswith(SUFFIX) and not magic:
        return [(source, basename(source))]
    system, path = open_file_system(source)
    try:
        system.invalidate_cache()  # which may be of an earlier call, hours ago
        if magic and not system.exists(path):
            root = _fixed_part(source)
            paths = [
                name for name, entry in system.glob(path, detail=True).items() if entry["type"] == "file"
            ]
        elif system.isdir(path):
            root = source
            paths = [name for name in system.find(path) if name.endswith(SUFFIX)]
        else:
            return [(source, basename(source))]
    except Exception as error:  # of whatever library the protocol is spoken by
        raise UsageError(f"{source}: cannot be listed: {one_line_reason(error)}") from error
    above = len(identity(root)[1])
    names = sorted(path[above:].lstrip("/") for path in paths)
    return [(join(root, name), name) for name in names if "/." not in f"/{name}"]


def _walk(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> NoReturn:
        raise UsageError(f"{error.filename}: cannot be listed: {error.strerror}") from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            os.path.join(root, name)
            for name in sorted(names)
            if name.endswith(SUFFIX) and not name.startswith(".")
        )


def _fixed_part(pattern: str) -> str:
    """Return the folder of a pattern down to where it begins to vary."""
    head = pattern
    while glob.has_magic(head):
        head = os.path.dirname(head)
    if is_url(pattern) and not is_url(head):
        return f"{head}//"  # the pattern varies in what comes first
    return head or "."
