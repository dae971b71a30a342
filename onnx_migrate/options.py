"""The options of a migration: those of the core, and those of each feature, as keywords of the library calls.

Type checkers read options.pyi, which `python -m tools.pages.option_types` writes from the declarations.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.core_options import CoreOptions
from onnx_migrate.engine.features import features

__all__ = ["Options"]

_PARTS = (*(feature.options for feature in reversed(features()) if feature.options), CoreOptions)
"""A dataclass takes the fields of its last base first: those of the core, then those of each feature."""


@dataclass(frozen=True, kw_only=True)
class Options(*_PARTS):
    """The keywords of `onnx_migrate.migrate`, in the order in which a report lists them: the core's, then each feature's.

    Declare a new option in the module `feature` of its folder, with its default, its text in `help(migrate)`, and its flag on
    the command line. The command line, the configuration file, the report and the docs read these declarations.
    """
