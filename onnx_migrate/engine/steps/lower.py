"""The lowering: brings every node to an older opset, one registered step of its operator at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.engine.steps.decomposition_registry import Decomposition, decomposition_of
from onnx_migrate.engine.steps.lost_types import fit_types, has_lost_types
from onnx_migrate.engine.steps.lowering_registry import Lowering, lowering_from
from onnx_migrate.engine.steps.node_steps import apply_adapter, is_of_domain, node_name, true_version
from onnx_migrate.errors import CannotMigrate, InvalidModel, MigrateError, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shape_arithmetic import OPERATORS
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.model.graphs import FunctionKey, called, function_key
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.rewrite.driver import Visitor
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import signature_at

__all__ = ["OLDEST", "Lower", "LoweringRefusal"]

OLDEST = 7
"""ONNX Runtime has no kernels below opset 7 for Add, Mul, Gemm and many more, so nothing there could be verified."""


_FOLLOWED = OPERATORS | {"Size"}
"""The operators whose outputs are computed where their inputs are known."""


@dataclass(frozen=True)
class LoweringRefusal:
    """The error for a node, the function it stands in (None in the main graph), and the oldest opset that it can have."""

    error: MigrateError
    function: FunctionKey | None
    nearest: int


@dataclass
class Lower(Visitor):
    """Brings each node of a model to the older opset `target`, and the nodes that its steps write for it.

    A node that is refused stays as it is; `refusals` has them all, in the order of the nodes.
    """

    proto: onnx.ModelProto
    target: int
    log: ChangeLog
    domain: str = ""
    """The domain whose nodes are lowered, "" for ai.onnx."""
    pass_name: str = "lower_opset"
    refusals: list[LoweringRefusal] = field(default_factory=list)
    write_out: bool = False
    """Whether a node whose step is refused is decomposed, if its operator has a decomposition."""
    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._functions: set[FunctionKey] = {function_key(function) for function in self.proto.functions}
        self._values: dict[int, ValueFacts] = {}
        self._producers = Producers()
        owners: list[onnx.ModelProto | onnx.FunctionProto] = [self.proto, *self.proto.functions]
        keys = [None, *map(function_key, self.proto.functions)]
        self._opsets = {
            key: onnx_opset(owner.opset_import, ir_version=self.proto.ir_version)
            for key, owner in zip(keys, owners, strict=True)
        }

    def enter(self, scope: Scope) -> None:
        """Compute the constants of a body before any of its nodes is rewritten."""
        outer = self._values.get(id(scope.parent.body)) if scope.parent else None
        values = ValueFacts(scope, self._producers, followed=_FOLLOWED, outer=outer)
        opset = self._opsets.get(scope.function)
        values.find_all(None if self.domain else opset)
        self._values[id(scope.body)] = values

    def leave(self, scope: Scope) -> None:
        """Forget the constants of a body."""
        del self._values[id(scope.body)]

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset whose form a node has, None where it has a form of the target or an older one already.

        Raises CannotMigrate for a node that has the form of no opset.
        """
        if not is_of_domain(node, self.domain) or (self._functions and called(node) in self._functions):
            return None
        start = true_version(node, scope, opset, self.target, ChangeLog(), self.pass_name)
        form = signature_at(node.domain, node.op_type, start)
        if form is None or form.since_version <= self.target:
            return None
        self._origin = (
            scope,
            Where(scope.path, node_name(node), node.op_type, form.since_version, self.target),
        )
        self._leaves = form.since_version
        self._used_at_run_time: list[tuple[str, str]] = []
        return start

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> LoweringRewriter | None:
        """Take the next step of a node's operator from `version` down; None where there is none above the target.

        Raises CannotMigrate where the step is refused or missing, and where its adapter refuses or fails.
        """
        while is_of_domain(node, self.domain) and version > self.target:
            form = signature_at(node.domain, node.op_type, version)
            if form is None:
                raise self._error(
                    f"a step wrote {node.op_type}, which opset {version} does not have", code="adapter-failed"
                )
            leaves = self._leaves = form.since_version
            if leaves <= self.target:
                return None
            step = lowering_from(node.domain, node.op_type, leaves)
            if step is None:
                raise self._error(
                    f"onnx-migrate has no step down from {node.op_type}-{leaves} yet",
                    code="no-adapter",
                    hint=f"migrate to opset {leaves} instead",
                )
            written_out = decomposition_of(node.domain, node.op_type) if self.write_out else None
            if step.refusal and written_out is not None:
                return self._written_out(written_out, node, scope, version)
            if step.refusal:
                raise self._error(step.refusal, code="no-equal", hint=step.hint)
            casts = has_lost_types(step, node, scope)
            if step.adapt or casts or step.exactness is not Exactness.EXACT:
                return self._step(step, node, scope, casts=casts)
            version = leaves - 1
        return None

    def result_version(self, opset: int) -> int:
        """Return the target."""
        return self.target

    def handle_refusal(self, error: MigrateError) -> None:
        """Record the refusal of a node, which stays as it is; an error that is no refusal is raised."""
        if not isinstance(error, CannotMigrate) or isinstance(error, InvalidModel):
            raise error
        scope, where = self._origin
        unbound = next((pair for pair in self._used_at_run_time if self._is_of_model(scope, pair[0])), None)
        if unbound is not None and self._leaves < (where.from_version or 0):
            name, what = unbound
            error = CannotMigrate(
                f"its {what} ({name!r}) must be a constant below opset {self._leaves}, and {name!r} is computed at run time"
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
            error = CannotMigrate(f"{error.reason}{written}", code=error.code, where=where, hint=error.hint)
        else:
            error.where = where
        self.refusals.append(LoweringRefusal(error, scope.function, self._leaves))

    def _step(self, step: Lowering, node: onnx.NodeProto, scope: Scope, *, casts: bool) -> LoweringRewriter:
        where = Where(scope.path, node_name(node), node.op_type, step.leaves, step.leaves - 1)
        rewriter = LoweringRewriter(
            node, scope, step.leaves - 1, self.target, where, self._values[id(scope.body)]
        )
        rewriter.default_reason = step.reason
        if self.domain:
            rewriter.onnx_opset = self._opsets.get(scope.function) or rewriter.onnx_opset
        if casts:
            fit_types(step, rewriter)
        if step.adapt is not None:
            apply_adapter(step.adapt, step.code, rewriter)
        rewriter.finish()
        self._used_at_run_time += rewriter.used_at_run_time
        rewriter.exactness = rewriter.exactness or step.exactness
        return rewriter

    def _written_out(
        self, step: Decomposition, node: onnx.NodeProto, scope: Scope, version: int
    ) -> LoweringRewriter:
        """Decompose a node at its version; what is written goes on down from there."""
        where = Where(scope.path, node_name(node), node.op_type, version, version)
        rewriter = LoweringRewriter(node, scope, version, version, where, self._values[id(scope.body)])
        rewriter.default_reason = (
            f"opset {self.target} has no {step.operator}, which is close to this: {step.reason}"
        )
        apply_adapter(step.adapt, step.code, rewriter)
        rewriter.finish()
        rewriter.exactness = rewriter.exactness or step.exactness
        return rewriter

    def _is_of_model(self, scope: Scope, name: str) -> bool:
        """Return whether a value is of the model itself, and was not written by a step."""
        if self._producers.find(scope, name) is not None:
            return True
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

    def _error(self, reason: str, *, code: str, hint: str = "") -> CannotMigrate:
        return CannotMigrate(reason, code=code, where=self._origin[1], hint=hint)
