"""Looks up the contents of a folder, and the targets of links.

os.path, pathlib and pkgutil treat an unreadable folder as empty. They treat a file as missing if looking it up fails. The
functions here raise OSError instead.
"""

from __future__ import annotations

import errno
import inspect
import os
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

__all__ = ["exists", "listed", "real_path", "submodules"]


def exists(path: Path) -> bool:
    """Return whether a path leads to an existing file or folder, after following links."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise
    return True


def listed(folder: Path, pattern: str) -> list[Path]:
    """Return the paths in a folder whose names match a pattern, sorted."""
    return sorted(folder / name for name in os.listdir(folder) if fnmatchcase(name, pattern))


def submodules(package: ModuleType) -> list[str]:
    """Return the names of the modules and packages in a package, sorted."""
    module_names = set()
    for folder in package.__path__:
        for entry in os.listdir(folder):
            # A folder without source, such as __pycache__, is no module.
            name = inspect.getmodulename(entry)
            if name is None and exists(Path(folder, entry, "__init__.py")):
                name = entry
            module_names.add(name or "__init__")
    return sorted(module_names - {"__init__"})


_TRIES = 20


def real_path(path: str | os.PathLike[str]) -> str:
    """Return `os.path.realpath`, tried again if a file replaced a link during the lookup.

    In this case, Python's own function raises OSError (EINVAL) (`_joinrealpath` in posixpath.py).
    """
    for _ in range(_TRIES):
        try:
            return os.path.realpath(path)
        except OSError as error:  # noqa: PERF203
            if error.errno != errno.EINVAL:
                raise
    return os.path.realpath(path)
