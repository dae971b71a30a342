"""Brings any ONNX model to the opset its user needs, and proves that it still computes the same."""

from __future__ import annotations

import os.path

from onnx_migrate import forks
from onnx_migrate._version import __version__

# typing and pathlib would take milliseconds, in which Ctrl-C ends the command line with a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from onnx_migrate.batching import Job, Outcome, Summary, Watcher, batch
    from onnx_migrate.comparison import compare
    from onnx_migrate.conversion import convert_version
    from onnx_migrate.difference import Difference, diff
    from onnx_migrate.engine.model_properties import ModelProperty
    from onnx_migrate.engine.pass_infra import Pass
    from onnx_migrate.engine.pipeline import Pipeline
    from onnx_migrate.errors import (
        Cancelled,
        CannotMigrate,
        IllegalModel,
        InvalidModel,
        LoadError,
        MigrateError,
        PassError,
        SaveError,
        UsageError,
        VerificationFailed,
        Where,
    )
    from onnx_migrate.explanation import explain
    from onnx_migrate.inspection import inspect
    from onnx_migrate.migration import Migration, migrate
    from onnx_migrate.pipelines import default_pipeline
    from onnx_migrate.process.progress import Progress
    from onnx_migrate.reduction.reduce import reduce
    from onnx_migrate.reduction.result import Reduction
    from onnx_migrate.report import ModelSummary, PartialReport, Report
    from onnx_migrate.rewrite.change_log import Change, ChangeLog, Note
    from onnx_migrate.session import Session
    from onnx_migrate.verdicts import Comparison, DynamicProof, Kind, RuntimeProof, Verdict

__all__ = [
    "Cancelled",
    "CannotMigrate",
    "Change",
    "ChangeLog",
    "Comparison",
    "Difference",
    "DynamicProof",
    "IllegalModel",
    "InvalidModel",
    "Job",
    "Kind",
    "LoadError",
    "MigrateError",
    "Migration",
    "ModelProperty",
    "ModelSummary",
    "Note",
    "Outcome",
    "PartialReport",
    "Pass",
    "PassError",
    "Pipeline",
    "Progress",
    "Reduction",
    "Report",
    "RuntimeProof",
    "SaveError",
    "Session",
    "Summary",
    "UsageError",
    "Verdict",
    "VerificationFailed",
    "Watcher",
    "Where",
    "__version__",
    "batch",
    "compare",
    "convert_version",
    "default_pipeline",
    "diff",
    "explain",
    "inspect",
    "migrate",
    "reduce",
]

# `passes` is next to the package in a source tree, and inside it in a wheel.
_FOLDER = os.path.dirname(os.path.abspath(__file__))
if not os.path.isdir(os.path.join(_FOLDER, "passes")):
    __path__.append(os.path.dirname(_FOLDER))

_MODULES = {
    "batching": ("Job", "Outcome", "Summary", "Watcher", "batch"),
    "comparison": ("compare",),
    "difference": ("Difference", "diff"),
    "engine.model_properties": ("ModelProperty",),
    "engine.pass_infra": ("Pass",),
    "engine.pipeline": ("Pipeline",),
    "explanation": ("explain",),
    "inspection": ("inspect",),
    "conversion": ("convert_version",),
    "migration": ("Migration", "migrate"),
    "pipelines": ("default_pipeline",),
    "process.progress": ("Progress",),
    "reduction.reduce": ("reduce",),
    "reduction.result": ("Reduction",),
    "report": ("ModelSummary", "PartialReport", "Report"),
    "rewrite.change_log": ("Change", "ChangeLog", "Note"),
    "session": ("Session",),
    "verdicts": ("Comparison", "DynamicProof", "Kind", "RuntimeProof", "Verdict"),
}
"""The modules that define the public names. The module `errors` defines the rest."""


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used, so that `--help` does not load onnx."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    forks.import_what_locks()
    module = next((module for module, names in _MODULES.items() if name in names), "errors")
    value = getattr(import_module(f"onnx_migrate.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
