"""Corrects declared shapes that a folded branch had hidden, and that are wrong."""

from __future__ import annotations

import onnx

from onnx_migrate.analysis.shapes import dims_of, inferred_outputs
from onnx_migrate.errors import CannotMigrate, PassError
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from ..declared_shapes import DeclaredShapes

__all__ = ["mend_declarations"]


def mend_declarations(model: Model, before: onnx.ModelProto, log: ChangeLog, step: str) -> None:
    """Correct the declarations that contradict the simplified graph, in place; the notes bear the name of the step.

    The shape of an If with two branches of other ranks is unknown, so a wrong declaration of its output shows only
    once one branch has taken its place. Raises PassError, code `not-simplified`, where one cannot be corrected that did
    not show `before`.
    """
    found = ChangeLog()
    DeclaredShapes().run(model, found)
    for note in found.notes:
        if note.code in ("output-dims", "value-info"):
            log.note(step, note.code, note.message, subject=note.subject, severity=note.severity)
    wrong = _contradiction(model.proto)
    if wrong and not _contradiction(before):
        raise PassError(
            f"the simplified model contradicts itself: {wrong}",
            code="not-simplified",
            hint="a branch that was folded had hidden it; correct the declaration, or leave simplify out",
        )


def _contradiction(proto: onnx.ModelProto) -> str:
    """Return what onnx's inference complains of, or which output has another rank than inferred; "" if nothing."""
    try:
        inferred = inferred_outputs(proto)
    except CannotMigrate as error:
        return error.reason
    for value in proto.graph.output:
        declared, dims = dims_of(value), inferred.get(value.name)
        if declared is not None and dims is not None and len(declared) != len(dims):
            return f"output {value.name!r} is declared with {len(declared)} dims and has {len(dims)}"
    return ""
