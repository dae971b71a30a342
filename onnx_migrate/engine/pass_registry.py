"""The passes of this distribution by name. Their modules register them when they are imported."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from onnx_migrate.engine.features import PASSES, features
from onnx_migrate.engine.pass_infra import REGISTERED, Pass
from onnx_migrate.safe_open.paths import submodules

__all__ = ["builtin_passes", "make_pass"]


@cache
def builtin_passes() -> dict[str, type[Pass]]:
    """Return the classes of this package's passes by name."""
    for module in submodules(importlib.import_module(PASSES)):
        importlib.import_module(f"{PASSES}.{module}")
    for feature in features():
        for module in feature.modules:
            importlib.import_module(f"{feature.package}.{module}")
    return dict(sorted(REGISTERED.items()))


def make_pass(name: str, **options: Any) -> Pass:
    """Return a pass of this package with these options, which are the fields of its class."""
    if name not in REGISTERED and name in submodules(importlib.import_module(PASSES)):
        importlib.import_module(f"{PASSES}.{name}")  # all others together take a tenth of a second
    kind = REGISTERED.get(name) or builtin_passes()[name]
    return kind(**options)
