"""Loads what packages offer: installed ones by entry points, folders of this package by an object of one name in each file."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open.paths import submodules

__all__ = ["load_installed", "not_loadable", "objects_in"]


def load_installed(group: str, kind: str) -> dict[str, Any]:
    """Return the objects of all entry points of a group by name, in the order of the names; `kind` names them in an error.

    Raises UsageError, code `plugin-failed`, for one that cannot be loaded.
    """
    points = sorted(entry_points(group=group), key=lambda point: point.name)
    objects: dict[str, Any] = {}
    for point in points:
        try:
            objects[point.name] = point.load()
        except Exception as error:  # noqa: PERF203 - what a module raises as it is imported
            raise not_loadable(kind, point.name, point.value, error) from error
    return objects


def not_loadable(kind: str, name: str, module: str, error: Exception) -> UsageError:
    """Return the error, code `plugin-failed`, for a module of an installed package that raised `error` as it was imported."""
    return UsageError(
        f"the {kind} {name!r} ({module}), which is installed, cannot be loaded: {type(error).__name__}: {error}",
        code="plugin-failed",
        hint="fix it, or uninstall the package",
    )


def objects_in(package: str, name: str) -> tuple[Any, ...]:
    """Return the objects of this name of all modules in a package that have one, in the order of the modules' names."""
    modules = [import_module(f"{package}.{module}") for module in submodules(import_module(package))]
    return tuple(getattr(module, name) for module in modules if hasattr(module, name))
