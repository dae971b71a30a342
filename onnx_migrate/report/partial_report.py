"""What a migration had done to a model when it failed, and the node at which it failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import onnx

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.errors import Where
from onnx_migrate.model.model import Model
from onnx_migrate.report.report import (
    ModelSummary,
    change_as_dict,
    note_as_dict,
    request_as_dict,
    summary_as_dict,
)
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Note
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.spec.schema import same_domain, signature_at

__all__ = ["PartialReport"]


@dataclass(frozen=True)
class PartialReport:
    """The original model, what was changed in memory before the failure, and the node that could not be migrated.

    `node` is recorded as a change without a result; None if the error names no node of the original model.
    """

    before: ModelSummary
    changes: tuple[Change, ...]
    notes: tuple[Note, ...]
    seconds: Mapping[str, float]
    node: Change | None
    model: str = ""
    request: Request | None = None

    @classmethod
    def of(
        cls,
        original: Model,
        log: ChangeLog,
        where: Where | None,
        seconds: Mapping[str, float],
        request: Request | None = None,
    ) -> PartialReport:
        """Describe a migration of `original` that failed at `where`."""
        return cls(
            ModelSummary.of(original.proto),
            tuple(log.changes),
            tuple(log.notes),
            dict(seconds),
            None if where is None or not where.node else _blocked_node(original, where),
            original.name,
            request,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that the JSON of a failure has besides the error."""
        return {
            "request": request_as_dict(self.request, self.model, self.before),
            "before": summary_as_dict(self.before),
            "changes": [change_as_dict(change) for change in self.changes],
            "notes": [note_as_dict(note) for note in self.notes],
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
            "blocked": None if self.node is None else change_as_dict(self.node),
        }


def _blocked_node(model: Model, where: Where) -> Change | None:
    """Return the node of the original model that an error names, None if there is none."""
    tops = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)
    for scope in chain.from_iterable(top.nested() for top in tops):
        for node in scope.body.node:
            if where.node not in (node.name, *node.output[:1]):
                continue
            if where.scope not in ("", scope.path) or where.operator not in ("", node.op_type):
                continue
            return Change(
                pass_name="",
                where=where,
                serialised_before=node.SerializeToString(deterministic=True),
                version_before=where.from_version or _since(node, model.proto),
                serialised_after=None,
                version_after=where.to_version or 0,
                emitted=(),
                reason="",
                serialised_constants=constant_summaries(scope, node.input),
            )
    return None


def _since(node: onnx.NodeProto, proto: onnx.ModelProto) -> int:
    """Return the since_version of a node's operator, 0 if the installed onnx does not know the operator."""
    opset = max(
        (item.version for item in proto.opset_import if same_domain(item.domain, node.domain)), default=1
    )
    form = signature_at(node.domain, node.op_type, opset)
    return form.since_version if form else 0
