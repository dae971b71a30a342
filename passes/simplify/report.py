"""The value of the simplification in a report."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.json_form import selects
from onnx_migrate.reported import reported

from .simplification import Simplification

__all__ = ["REPORT", "SimplifyReport"]


@dataclass(frozen=True, kw_only=True)
class SimplifyReport:
    """The value of this feature: the operators before and after the simplifier, None if it changed nothing."""

    simplified: Simplification | None = reported(
        Simplification, None, "simplify", summary=lambda change: str(change) if change.done else ""
    )


REPORT = SimplifyReport
selects(Simplification, "before after done")
