"""Finds the models of a batch, and the path of each result."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open.transfers import Transfer
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
    """Return each model's path or URL, and its path relative to the folder that contained it.

    The models keep the order of `sources`; the models of one source are sorted by name. A source is a path or a URL of a file,
    a folder or a glob pattern. A folder stands for all files below it named *.onnx, and ** matches any depth of folders. A file
    that `sources` names is returned whatever its suffix, even if it does not exist: loading it then fails. Files and folders
    whose names begin with a dot are skipped.

    Raises UsageError for a folder or a pattern without any model, and for an unreadable folder or URL.
    """
    models: dict[str, str] = {}
    for named_source in sources:
        source = resolve_file_url(os.fspath(named_source))
        if is_url(source):
            inside = _models_at_url(source)
        elif os.path.isdir(source):
            # Results keep their paths relative to this folder.
            inside = [(path, os.path.relpath(path, source)) for path in _models_below(source)]
        elif not os.path.exists(source) and glob.has_magic(source):
            root = _fixed_part(source)
            paths = sorted(path for path in glob.glob(source, recursive=True) if os.path.isfile(path))
            inside = [(path, os.path.relpath(path, root)) for path in paths]
        else:
            inside = [(source, os.path.basename(source))]
        if not inside:
            raise UsageError(
                f"there is no model in {source}", hint=f"give a folder or pattern with files named *{SUFFIX}"
            )
        for path, relative in inside:
            # A model that several sources name is migrated once.
            models.setdefault(path, relative)
    return list(models.items())


def place(found: Iterable[tuple[str, str]], out_dir: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Return each model's path, and the path of its result below `out_dir`.

    Skips models that an earlier run wrote as results. Raises UsageError for two models with the same result, and for a result
    that would overwrite a model.
    """
    pairs: list[tuple[str, str]] = []
    model_by_target: dict[str, str] = {}
    folder = resolve_file_url(os.fspath(out_dir))
    out = identity(folder)
    # Results of an earlier run in the same folder are no sources.
    found = [(path, relative) for path, relative in found if not _result(path, relative, out)]
    models = {identity(path) for path, _ in found}
    for path, relative in found:
        target = join(folder, relative)
        # A result must not replace a model that is still to be read.
        if identity(target) in models:
            raise UsageError(
                f"the result {target} would overwrite one of the models",
                hint="give another --out-dir, or --in-place to replace the models",
            )
        other = model_by_target.setdefault(os.path.normpath(target), path)
        if other != path:
            raise UsageError(
                f"the results of {other} and {path} would both be written to {target}",
                hint="give the folder above both as the source: its structure is kept",
            )
        pairs.append((path, target))
    return pairs


def _result(path: str, relative: str, out: Identity) -> bool:
    """Return whether a model lies in `out`, the folder of results, and `out` lies in the source folder it was found in."""
    root = identity(path.removesuffix(relative) or ".")
    return _below(identity(path), out) and not _below(root, out)


def _below(path: Identity, folder: Identity) -> bool:
    return path == folder or (path[0] == folder[0] and path[1].startswith(folder[1] + "/"))


def _models_at_url(source: str) -> list[tuple[str, str]]:
    """Return the models at a URL, as `find` does; a URL that ends in .onnx causes no request to the server."""
    magic = glob.has_magic(without_query(source))
    if without_query(source).endswith(SUFFIX) and not magic:
        return [(source, basename(source))]
    system, path = open_file_system(source)
    try:
        listed = Transfer().run(lambda: _listed(system, path, source, magic=magic))
        if listed is None:
            return [(source, basename(source))]
        root, paths = listed
    except Exception as error:  # of any kind: of the library for the protocol
        raise UsageError(
            f"{source}: cannot be listed: {one_line_reason(error)}",
            hint="check the URL and the credentials for it",
        ) from error
    above = len(identity(root)[1])
    names = sorted(path[above:].lstrip("/") for path in paths)
    return [(join(root, name), name) for name in names if "/." not in f"/{name}"]


def _listed(system: Any, path: str, source: str, *, magic: bool) -> tuple[str, list[str]] | None:
    """Return the part of a URL that all models have in common, and their paths; None for the URL of a file."""
    system.invalidate_cache()  # a listing may be cached since an earlier call, hours ago
    if magic and not system.exists(path):
        entries = system.glob(path, detail=True).items()
        return _fixed_part(source), [name for name, entry in entries if entry["type"] == "file"]
    if system.isdir(path):
        return source, [name for name in system.find(path) if name.endswith(SUFFIX)]
    return None


def _models_below(folder: str) -> Iterator[str]:
    """Yield the paths of all models in a folder and the folders below it, sorted by name within each folder."""

    def refuse(error: OSError) -> NoReturn:
        raise UsageError(
            f"the folder {error.filename} cannot be listed: {error.strerror}", hint="check its permissions"
        ) from error

    for root, folders, names in os.walk(folder, onerror=refuse):
        # In place, because os.walk descends into what remains in this list.
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            os.path.join(root, name)
            for name in sorted(names)
            if name.endswith(SUFFIX) and not name.startswith(".")
        )


def _fixed_part(pattern: str) -> str:
    """Return the folder before the first part of a pattern that contains *, ? or [."""
    head = pattern
    while glob.has_magic(head):
        head = os.path.dirname(head)
    if is_url(pattern) and not is_url(head):
        return f"{head}//"  # the first part after the protocol is a pattern
    return head or "."
