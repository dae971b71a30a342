"""Brings any ONNX model to the opset its user needs, and proves that it still computes the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx_migrate._version import __version__

if TYPE_CHECKING:
    from onnx_migrate.batching import batch
    from onnx_migrate.comparison import compare
    from onnx_migrate.engine.model_properties import ModelProperty
    from onnx_migrate.engine.pass_infra import Pass
    from onnx_migrate.engine.pipeline import Pipeline, default_pipeline
    from onnx_migrate.errors import (
        CannotMigrate,
        IllegalModel,
        LoadError,
        MigrateError,
        PassError,
        SaveError,
        UsageError,
        VerificationFailed,
        Where,
    )
    from onnx_migrate.inspection import inspect
    from onnx_migrate.migration import Migration, convert_version, migrate

__all__ = [
    "CannotMigrate",
    "IllegalModel",
    "LoadError",
    "MigrateError",
    "Migration",
    "ModelProperty",
    "Pass",
    "PassError",
    "Pipeline",
    "SaveError",
    "UsageError",
    "VerificationFailed",
    "Where",
    "__version__",
    "batch",
    "compare",
    "convert_version",
    "default_pipeline",
    "inspect",
    "migrate",
]

# `passes` is next to the package in a source tree, and inside it in a wheel.
if not (Path(__file__).parent / "passes").is_dir():
    __path__.append(str(Path(__file__).parent.parent))

_MODULES = {
    "Migration": "migration",
    "ModelProperty": "engine.model_properties",
    "Pass": "engine.pass_infra",
    "Pipeline": "engine.pipeline",
    "batch": "batching",
    "compare": "comparison",
    "convert_version": "migration",
    "default_pipeline": "engine.pipeline",
    "inspect": "inspection",
    "migrate": "migration",
}


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used, so that `--help` does not load onnx."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"onnx_migrate.{_MODULES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
