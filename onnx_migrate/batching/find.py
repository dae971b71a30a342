"""Which models a batch has, and where each result goes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator

from onnx_migrate.errors import UsageError

__all__ = ["find", "place"]

SUFFIX = ".onnx"


def find(sources: Iterable[str | os.PathLike[str]]) -> list[tuple[str, str]]:
    """Return each model's path, and its path below the folder it was found in, in the order given, then by name.

    A source is a file, a folder, of which all files named *.onnx are taken, or a glob pattern (** goes through
    folders). A file named outright is taken whatever its name is, and also if it is not there, which is then its
    own failure. Files and folders whose names begin with a dot are passed over.
    Raises UsageError for a folder or a pattern without any.
    """
    found: dict[str, str] = {}
    for given in sources:
        source = os.fspath(given)
        if os.path.isdir(source):
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
    out = os.path.realpath(out_dir)
    found = [(path, relative) for path, relative in found if not _result(path, relative, out)]
    models = {os.path.realpath(path) for path, _ in found}
    for path, relative in found:
        target = os.path.join(out_dir, relative)
        if os.path.realpath(target) in models:
            raise UsageError(f"{target} is one of the models", hint="give another folder, or --in-place")
        other = taken.setdefault(os.path.normpath(target), path)
        if other != path:
            raise UsageError(
                f"{other} and {path} would both be written to {target}", hint="give the folder above both"
            )
        pairs.append((path, target))
    return pairs


def _result(path: str, relative: str, out: str) -> bool:
    """Tell whether a model is what an earlier run wrote to `out`, a folder within the source it was found in."""
    root = os.path.realpath(path.removesuffix(relative) or ".")
    return _below(os.path.realpath(path), out) and not _below(root, out)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


def _walk(folder: str) -> Iterator[str]:
    for root, folders, names in os.walk(folder):
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
    return head or "."
