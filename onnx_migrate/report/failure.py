"""A migration that ended with an error: the reason, its changes to the model so far, and the node at which it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

from onnx_migrate.errors import InvalidModel, LoadError, MigrateError, UsageError, VerificationFailed, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.json_form import Seconds
from onnx_migrate.model.model import Model
from onnx_migrate.report.data import ModelSummary
from onnx_migrate.report.node_version import node_version
from onnx_migrate.report.request import Request
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Note
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.verdicts import FirstDifference, RuntimeProof, Verdict

__all__ = ["Failure", "PartialReport", "exit_code"]


@dataclass(frozen=True)
class PartialReport:
    """The original model, the changes in memory before the failure, and the node without a conversion.

    `node` is recorded as a change without a result; None if the error names no node of the original model.
    """

    before: ModelSummary | None = None
    """Summary of the original, None if the model was not loaded."""
    changes: tuple[Change, ...] = ()
    notes: tuple[Note, ...] = ()
    seconds: Mapping[str, Seconds] = field(default_factory=dict)
    node: Change | None = None
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


@dataclass(frozen=True)
class Failure:
    """A migration that ended with an error: the error, with the name of its class in `kind`, and its work until then."""

    model: str
    outcome: Literal["refused", "invalid", "failed"]
    code: str
    kind: str
    reason: str
    hint: str
    hint_tried: bool
    """Whether all of the hint was tried; a part that was not is marked."""
    where: Where | None
    done: PartialReport = field(default_factory=PartialReport)
    verification: Verdict | None = None
    first_difference: FirstDifference | None = None
    proved_in: tuple[RuntimeProof, ...] = ()

    @classmethod
    def of(cls, model: str, error: MigrateError) -> Failure:
        """Describe the failure of a model with this error."""
        partial = error.partial_report
        failed = error if isinstance(error, VerificationFailed) else VerificationFailed("")
        return cls(
            model,
            _outcome(error),
            error.code,
            type(error).__name__,
            error.reason,
            error.hint,
            error.hint_tried,
            error.where,
            partial if isinstance(partial, PartialReport) else PartialReport(),
            failed.verification,
            failed.first_difference,
            failed.proved_in,
        )

    @property
    def request(self) -> Request | None:
        """Return the options of the migration."""
        return self.done.request

    @property
    def command(self) -> str | None:
        """The command line that does the same again, None if there is none."""
        partial = self.done
        if partial.request is None or partial.before is None:
            return None
        return partial.request.command(partial.model, (*partial.before.inputs, *partial.before.outputs))


def _outcome(error: MigrateError) -> Literal["refused", "invalid", "failed"]:
    if isinstance(error, InvalidModel):
        return "invalid"
    return "refused" if exit_code(error) in (1, 2) else "failed"


def exit_code(error: MigrateError) -> int:
    """Return 4 for a model that cannot be read or is not valid, 3 for numbers that differ, 2 for a wrong argument, else 1."""
    if isinstance(error, LoadError):
        return 4
    if isinstance(error, VerificationFailed):
        return 3
    return 2 if isinstance(error, UsageError) else 1


def _blocked_node(model: Model, where: Where) -> Change | None:
    """Return the node of the original model that an error names, None if there is none."""
    tops = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)
    for scope in chain.from_iterable(top.nested() for top in tops):
        for node in scope.body.node:
            # An unnamed node is known by its first output.
            if where.node not in (node.name, *node.output[:1]):
                continue
            if where.scope not in ("", scope.path) or where.operator not in ("", node.op_type):
                continue
            return Change(
                pass_name="",
                where=where,
                serialised_before=node.SerializeToString(deterministic=True),
                version_before=where.from_version or node_version(node, model.proto),
                serialised_after=None,
                version_after=where.to_version or 0,
                emitted=(),
                reason="",
                serialised_constants=constant_summaries(scope, node.input),
            )
    return None
