"""Loads what installed packages offer by entry points: features, and plug-ins with steps."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from onnx_migrate.errors import UsageError

__all__ = ["load_installed"]


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
            raise UsageError(
                f"the {kind} {point.name!r} ({point.value}), which is installed, cannot be loaded: {type(error).__name__}:"
                f" {error}",
                code="plugin-failed",
                hint="fix it, or uninstall the package",
            ) from error
    return objects
