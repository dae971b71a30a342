"""The lowering: brings every node to an older opset, one registered step of its operator at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.advice import Advice, Hint
from onnx_migrate.engine.steps.node_steps import is_of_domain, take, true_version
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal, StepVisitor
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.scope import Scope
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.schema import signature_at

__all__ = ["OLDEST", "Lower"]

OLDEST = 7
"""ONNX Runtime has no kernels below opset 7 for Add, Mul, Gemm and many more, so nothing there could be verified."""


@dataclass
class Lower(StepVisitor):
    """Brings each node of a model to the older opset `target`, and the nodes that its steps write for it."""

    pass_name: str = "lower_opset"
    target: int = field(kw_only=True)
    write_out: bool = False
    """Whether to decompose a node whose step refuses, if its operator has a decomposition."""
    repeats: ClassVar[bool] = True

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset whose form a node has, None if it already has a form of the target or an older one.

        Raises CannotMigrate for a node that has the form of no opset.
        """
        if not is_of_domain(node, self.domain) or self.calls_function(node):
            return None
        start = true_version(node, scope, opset, self.target, ChangeLog(), self.pass_name)
        form = signature_at(node.domain, node.op_type, start)
        if form is None or form.since_version <= self.target:
            return None
        self._origin = scope, self.where(node, scope, form.since_version, self.target)
        self._leaves = form.since_version
        self._used_at_run_time: list[tuple[str, str]] = []
        return start

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> LoweringRewriter | None:
        """Take the next step of a node's operator from `version` down; None if there is none above the target.

        Raises CannotMigrate if the step is missing or refuses, or if its adapter refuses or fails.
        """
        if not is_of_domain(node, self.domain) or version <= self.target:
            return None
        step = self.next_down(node, scope, version, self.target)
        if step is None:
            # The operator must exist at the target, or a step wrote a wrong node.
            if signature_at(node.domain, node.op_type, self.target) is None:
                raise self._error(
                    f"a step wrote {node.op_type}, which opset {version} does not have", code="adapter-failed"
                )
            return None
        # A refusal reports the opset at which the node stays.
        self._leaves = step if isinstance(step, int) else step.version
        if isinstance(step, int):
            raise self._error(
                f"onnx-migrate has no step down from {node.op_type}-{step} yet",
                code="no-adapter",
                hint=Advice(f"migrate to opset {step} instead", options={"opset": step}),
            )
        if not step.refusal:
            rewriter = self.step_down(step, node, scope, self.target)
            # A later refusal may go back to one of these values.
            self._used_at_run_time += rewriter.used_at_run_time
            return rewriter
        # A decomposition may differ by rounding, so the user must ask for it.
        other = decomposition_of(node.domain, node.op_type) if self.write_out else None
        if other is None:
            raise self._error(step.refusal, code="no-equal", hint=step.hint)
        rewriter = self.rewriter(node, scope, self.where(node, scope, version, version), version)
        missing = f"opset {self.target} has no {other.operator}, which is close to this"
        rewriter.default_reason = f"{missing}: {other.reason}"
        return take(other, rewriter)

    def result_version(self, opset: int) -> int:
        """Return the target."""
        return self.target

    def refusal(self, error: CannotMigrate) -> LoweringRefusal:
        """Return the refusal of a node, in the words of the step that refused it, of the node itself."""
        scope, where = self._origin
        unbound = next((pair for pair in self._used_at_run_time if self._is_of_model(scope, pair[0])), None)
        # The cause may lie in a written node, but the user can change only the model's own value.
        if unbound is not None and self._leaves < (where.from_version or 0):
            name, role = unbound
            error = CannotMigrate(
                f"its {role} ({name!r}) must be a constant below opset {self._leaves}, and {name!r} is computed at run time"
                " or can be set by the caller",
                code="needs-constant",
                where=where,
                hint=f"make {name!r} an initializer that is not a graph input",
            )
        elif error.where is None or (error.where.node, error.where.operator) != (where.node, where.operator):
            written = (
                f" ({error.where.operator}-{error.where.from_version}, which its steps write)"
                if error.where
                else ""
            )
            error = CannotMigrate(f"{error.reason}{written}", code=error.code, where=where, hint=error.advice)
        else:
            error.where = where
        return LoweringRefusal(error, scope.function, self._leaves)

    def _is_of_model(self, scope: Scope, name: str) -> bool:
        """Return whether a value is of the model itself, and was not written by a step."""
        if self._producers.find(scope, name) is not None:
            return True
        # A sub-graph may read an input of any body around it.
        at: Scope | None = scope
        while at is not None:
            body = at.body
            if (
                name in body.input
                if isinstance(body, onnx.FunctionProto)
                else any(v.name == name for v in body.input)
            ):
                return True
            at = at.parent
        return False

    def _error(self, reason: str, *, code: str, hint: Hint = "") -> CannotMigrate:
        return CannotMigrate(reason, code=code, where=self._origin[1], hint=hint)
