"""Names of a package that load their module when they are first used, so that callers load what they need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function `__getattr__` of a package; `modules` has the names of each module, with spaces between them."""
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        # The next access needs no call.
        setattr(sys.modules[package], name, value)
        return value

    return load
