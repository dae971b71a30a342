"""Imports the modules that register steps: those of a package, of installed plug-ins, and those that the user names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache

from onnx_migrate.errors import UsageError
from onnx_migrate.installed import load_installed
from onnx_migrate.safe_open.paths import submodules

__all__ = ["ENTRY_POINT_GROUP", "import_package", "import_steps", "load_plugins"]

ENTRY_POINT_GROUP = "onnx_migrate.adapters"
"""Each entry point of the group names a module, which registers the steps of custom domains as it is imported."""


def import_package(name: str) -> None:
    """Import all modules of a package, which register steps."""
    package = importlib.import_module(name)
    for module in submodules(package):
        importlib.import_module(f"{name}.{module}")


@cache
def load_plugins() -> tuple[str, ...]:
    """Import the modules that installed packages name as plug-ins with steps, and return their names.

    Raises UsageError, code `plugin-failed`, for one that cannot be imported.
    """
    return tuple(load_installed(ENTRY_POINT_GROUP, "plug-in"))


def import_steps(modules: Iterable[str]) -> None:
    """Import modules that register steps. Raises UsageError, code `plugin-failed`, for one that cannot be imported."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: PERF203 - what a module raises as it is imported
            raise UsageError(
                f"the module {name!r} with steps for operators cannot be imported: {type(error).__name__}: {error}",
                code="plugin-failed",
                hint="give the name of a module that Python can import from the working folder or PYTHONPATH",
            ) from error
