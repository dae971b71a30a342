"""Corrects declared shapes that a folded branch or loop had hidden, and that are wrong."""

from __future__ import annotations

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from ..declared_shapes import DeclaredShapes

__all__ = ["mend_outputs"]


def mend_outputs(model: Model, log: ChangeLog, step: str) -> None:
    """Correct the declarations that contradict the graph, in place; the notes bear the name of the step.

    The shapes of an If with two branches of other ranks are unknown, so a wrong declaration of its output shows only
    once one branch has taken its place. Runtimes refuse to load such a model.
    """
    found = ChangeLog()
    DeclaredShapes().run(model, found)
    for note in found.notes:
        if note.code in ("output-dims", "value-info"):
            log.note(step, note.code, note.message, subject=note.subject, severity=note.severity)
