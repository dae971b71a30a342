"""The lift: brings every node to a newer opset, one registered step of its operator at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import onnx

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.engine.registry import Adapter, next_step
from onnx_migrate.errors import CannotMigrate, InvalidModel, MigrateError, Where
from onnx_migrate.model.graphs import FunctionKey, called, function_key
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Visitor
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.allowed_values import value_violation
from onnx_migrate.spec.schema import (
    Signature,
    is_onnx,
    schema_violation,
    signature,
    signature_at,
    versions,
)

__all__ = ["Lift"]


@dataclass
class Lift(Visitor):
    """Brings each node of a model to opset `target`, and the nodes that its adapters write for it."""

    proto: onnx.ModelProto
    target: int
    log: ChangeLog
    keep: frozenset[str] = frozenset()
    domain: str = ""
    """The domain whose nodes are lifted, "" for ai.onnx; nodes that adapters write in another domain stay unchanged."""
    pass_name: str = "migrate_opset"
    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._functions: set[FunctionKey] = {function_key(function) for function in self.proto.functions}

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset whose form a node has, None where no step changes it on the way to the target.

        Raises CannotMigrate for a node that has the form of no opset.
        """
        if not self._owns(node) or (self._functions and called(node) in self._functions):
            return None
        start = self._true_version(node, scope, opset)
        if start >= self.target or next_step(node.domain, node.op_type, start, self.target) is None:
            return None
        return start

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        """Take the next step of a node's operator from `version` on; None where there is none up to the target.

        Raises CannotMigrate where the step is refused or missing, and where its adapter refuses or fails.
        """
        step = next_step(node.domain, node.op_type, version, self.target) if self._owns(node) else None
        if step is None:
            return None
        to = step if isinstance(step, int) else step.to
        where = Where(scope.path, _name(node), node.op_type, version, to)
        if isinstance(step, int):
            raise CannotMigrate(
                f"onnx-migrate has no adapter from this version to {node.op_type}-{to} yet", code="no-adapter", where=where,
                hint=f"migrate to opset {to - 1} instead",
            )  # fmt: skip
        if step.refusal:
            raise CannotMigrate(step.refusal, code="no-equal", where=where, hint=step.hint)
        rewriter = self._rewriter(node, scope, to, where)
        rewriter.default_reason = step.reason
        if step.adapt is not None:
            _adapt(step.adapt, step.code, rewriter)
        rewriter.exactness = rewriter.exactness or step.exactness
        return rewriter

    def result_version(self, opset: int) -> int:
        """Return the target."""
        return self.target

    def _owns(self, node: onnx.NodeProto) -> bool:
        return is_onnx(node.domain) if not self.domain else node.domain == self.domain

    def _true_version(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int:
        """Return the opset by whose schema the node is valid: that of the body, else the nearest older or newer version."""
        known = versions(node.domain, node.op_type)
        form = signature_at(node.domain, node.op_type, opset)
        if form and form.deprecated and form.since_version == known[0]:
            # GroupNormalization-18 was deprecated in the release that introduced it; exporters wrote it nevertheless.
            form = replace(form, deprecated=False)
            valid = next((version for version in known if version > form.since_version), None)
            if valid is None or self.target < valid:
                raise CannotMigrate(
                    "the standard deprecated this version in the release that introduced it, and onnx's checker rejects it",
                    code="no-equal",
                    where=Where(scope.path, _name(node), node.op_type, form.since_version),
                    hint=f"version {valid} is valid: migrate to opset {valid} or newer" if valid else "",
                )
        complaint = _complaint(node, form, opset) if form else None
        if form and complaint is None:
            return opset
        where = Where(scope.path, _name(node), node.op_type, opset)
        if not known:
            raise CannotMigrate(
                f"{self.domain or 'ai.onnx'} has no operator {node.op_type}", code="unknown-operator", where=where,
                hint="a custom operator must be in a domain of its own",
            )  # fmt: skip
        older = [version for version in reversed(known) if version < (form.since_version if form else 0)]
        newer = [version for version in known if version > opset]
        if form and schema_violation(node, form) is None:
            # Only a value is not allowed: a later version may allow it, unless its inputs mean something else.
            newer = [
                v for v in newer if signature(node.domain, node.op_type, v).max_inputs == form.max_inputs
            ]
        for version in (*older, *newer):
            if _complaint(node, signature(node.domain, node.op_type, version), version) is None:
                self.log.note(
                    self.pass_name,
                    "other-version",
                    f"{Where(scope.path, _name(node), node.op_type)} is valid by version {version} of the operator"
                    f" and not by opset {opset}, which the model imports; it was migrated from version {version}",
                    subject=_name(node),
                    severity="warning",
                )
                return version
        if form and schema_violation(node, form) is None:
            return opset  # a value that no version has: the adapters refuse it by name, or the check of the result does
        reason = (
            complaint
            or f"the operator was introduced in opset {known[0]}, but the model imports opset {opset}"
        )
        raise InvalidModel(reason, code="invalid-node", where=where)

    def _rewriter(self, node: onnx.NodeProto, scope: Scope, to: int, where: Where) -> Rewriter:
        return Rewriter(node, scope, to, self.target, where, self.keep)


def _adapt(adapt: Adapter, code: str, rewriter: Rewriter) -> None:
    try:
        adapt(rewriter.node, rewriter)
    except MigrateError:
        raise
    except Exception as error:
        raise CannotMigrate(
            f"the adapter {code} raised {type(error).__name__}: {error}", code="adapter-failed",
            where=rewriter.where, hint="unless the node is invalid, this is a bug of onnx-migrate: please report it",
        ) from error  # fmt: skip


def _complaint(node: onnx.NodeProto, form: Signature, version: int) -> str | None:
    return schema_violation(node, form) or value_violation(node, version)


def _name(node: onnx.NodeProto) -> str:
    return str(node.name or next((name for name in node.output if name), ""))
