"""A best effort leaves nodes unchanged that it cannot fit, and gives warnings instead of errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx

from onnx_migrate.engine.steps.decompose import Unfit
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.steps.lower_model import Lowered
from onnx_migrate.errors import MigrateError, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shapes import forget_symbols
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["decompose_or_leave", "leave_or_raise"]


def leave_or_raise(error: MigrateError, log: ChangeLog, pass_name: str, *, best_effort: bool) -> None:
    """Raise the error, or with `best_effort` note once that the model stays unchanged there, code `not-fitted`."""
    if not best_effort:
        raise error
    text = f"unchanged: {error.with_hint}"
    if not any(note.message == text for note in log.notes):
        subject = error.where.node if error.where else ""
        log.note(pass_name, "not-fitted", text, subject=subject, severity="warning")


def decompose_or_leave(
    model: Model,
    unfit: Unfit,
    log: ChangeLog,
    pass_name: str,
    may_stay: Callable[[set[Where]], bool] | None,
    **how: Any,
) -> Lowered:
    """Return the result of `decompose_model`. Nodes that it refuses stay unchanged if `may_stay` allows it.

    With None for `may_stay`, no node may stay. A node that cannot be found again by its name may not stay. If nodes
    were written, inner values lose their symbolic dims.
    """
    staying: set[Where] = set()
    before = len(log.changes)

    def asked(node: onnx.NodeProto, scope: Scope) -> str | None:
        if staying and Where(scope.path, node_label(node), node.op_type) in staying:
            return None
        return unfit(node, scope)

    while True:
        trial = log.trial()
        # Inlining changes the model, and a refused trial must leave no trace.
        whole = model.copy() if may_stay is not None else model
        fitted = decompose_model(model, asked, log, pass_name, **how)
        refused = {
            (refusal.error.where or Where())._replace(from_version=None, to_version=None)
            for refusal in fitted.refusals
        }
        # Nodes that stay need no second trial, so the loop ends without new refusals.
        if not refused or refused <= staying or may_stay is None or not may_stay(refused):
            if len(log.changes) > before and (count := forget_symbols(fitted.model.proto)):
                open_dims = f"left {count_of(count, 'symbolic dim')} of inner values open, as they follow from the inputs"
                log.note(pass_name, "value-info", open_dims, subject="model")
            return fitted
        trial.roll_back()
        model = whole
        staying |= refused
        for refusal in fitted.refusals:
            leave_or_raise(refusal.error, log, pass_name, best_effort=True)
