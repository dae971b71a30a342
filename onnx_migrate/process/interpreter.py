"""Finds the Python interpreter that child processes run, also inside a program that embeds Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

__all__ = ["interpreter"]


def interpreter() -> str | None:
    """Return the path of an interpreter of this version; None without one, for example in a frozen program.

    A program that embeds Python may leave `sys.executable` empty, or put its own path there. A frozen program, for example
    one made by PyInstaller, would start itself again and again.
    """
    if getattr(sys, "frozen", False):
        return None
    if _is_python(sys.executable):
        return sys.executable
    return next(filter(_is_python, _installed()), None)


def _installed() -> Iterator[str]:
    """Yield the possible paths of this version's interpreter, that of a virtual environment first."""
    yield from filter(None, [getattr(sys, "_base_executable", None)])
    version = sys.version_info
    names = [f"python{version[0]}.{version[1]}", f"python{version[0]}", "python"]
    for prefix in (sys.exec_prefix, sys.base_exec_prefix):
        if sys.platform == "win32":
            yield os.path.join(prefix, "python.exe")
            yield os.path.join(prefix, "Scripts", "python.exe")
        for name in names:
            yield os.path.join(prefix, "bin", name)


def _is_python(path: str | None) -> bool:
    """Return whether a path is that of an interpreter, by its name: a host that embeds Python has another."""
    name = os.path.basename(path or "").lower()
    return "py" in name and os.access(path or "", os.X_OK)
