"""The report on a change of precision: a few lines, the ranges of numbers, and the inputs used for the comparison."""

from __future__ import annotations

from onnx_migrate.model.graphs import node_label
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verdicts.precision_change import PrecisionChange
from onnx_migrate.verdicts.ranges import NodeRange, NumberRanges
from onnx_migrate.verify.precision.errors import CEILING

from .conversion import Conversion
from .islands import Found
from .numbers import largest, smallest

__all__ = ["report_change"]

_PASS = "precision"


def report_change(change: PrecisionChange, found: Found | None, last: Conversion, log: ChangeLog) -> None:
    """Record the changes, the nodes that stay, and the closeness of the result, and write a few notes about them."""
    log.record_fact("", "", change)
    log.note(_PASS, "precision", change.size_line)
    subject = change.kept[0].node if change.kept else ""
    log.note(_PASS, "kept-precision", change.kept_line, subject=subject)
    if change.reason_line:
        log.note(_PASS, "kept-precision", change.reason_line, subject=subject)
    if found is None:
        return
    _record_ranges(change.type, found, last, log)
    _report_inputs(change.type, found, log)
    for reason in found.limitations:
        message = f"more nodes may stay in {change.old_type} than must, because the search for them ended early: {reason}"
        log.note(_PASS, "precision-search", message, subject=subject, severity="warning")
    worst = change.worst
    if worst is not None:
        # Above its limit is only a result whose original rounds more than the result itself.
        severity = "info" if worst.agrees else "warning"
        message = change.error_line + _beyond_the_ceiling(change, last.plan.target)
        log.note(_PASS, "precision-error", message, subject=worst.name, severity=severity)


def _beyond_the_ceiling(change: PrecisionChange, target: int) -> str:
    """Say that the user's limit is above the highest one of the type, as the end of a sentence; "" if it is not."""
    if change.tolerance is None or change.tolerance <= CEILING[target]:
        return ""
    return f"; without --precision-tolerance it is at most {100 * CEILING[target]:.0f} %, as a fault looks like rounding beyond"


def _report_inputs(kind: str, found: Found, log: ChangeLog) -> None:
    """Say why nothing was compared, or which inputs were."""
    closeness = found.closeness
    if closeness.reason:
        message = f"the numbers in {kind} were not compared with the original's: {closeness.reason}"
        log.note(_PASS, "precision-unverified", message, severity="warning")
    if closeness.domain:
        log.note(
            _PASS,
            "precision-inputs",
            f"the comparison used floats that are {closeness.domain}, as the model computes NaN or infinity from others",
        )


def _record_ranges(kind: str, found: Found, last: Conversion, log: ChangeLog) -> None:
    """Record how large the numbers of nodes are."""
    plan = last.plan
    steps = [(step, step in plan.kept) for step in (*plan.changes, *plan.kept) if not step.frame.key]
    rows = [
        NodeRange(node_label(step.node), step.node.op_type, *found.sizes[step.node.output[0]], kept_reason)
        for step, kept_reason in sorted(steps, key=lambda one: one[0].index)
        if step.node.output and step.node.output[0] in found.sizes
    ]
    if rows:
        log.record_fact("", "", NumberRanges(kind, largest(plan.target), smallest(plan.target), tuple(rows)))
