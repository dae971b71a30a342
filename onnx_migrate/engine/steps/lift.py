"""The lift: brings every node to a newer opset, one registered step of its operator at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.node_steps import is_of_domain, node_name, take, true_version
from onnx_migrate.engine.steps.registry import next_step
from onnx_migrate.engine.steps.step import Direction
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.model.graphs import FunctionKey, called, function_key
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Visitor
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import same_domain

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
    beside: int = 17
    """The ai.onnx opset for a body that imports none, if another domain is lifted."""
    repeats: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._functions: set[FunctionKey] = {function_key(function) for function in self.proto.functions}
        keys = [None, *map(function_key, self.proto.functions)]
        self._onnx_opsets = dict(zip(keys, (opset for _, opset in body_opsets(self.proto)), strict=True))

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset whose form a node has; None if no step changes the node up to the target.

        Raises CannotMigrate for a node that has the form of no opset.
        """
        if not is_of_domain(node, self.domain) or (self._functions and called(node) in self._functions):
            return None
        start = true_version(node, scope, opset, self.target, self.log, self.pass_name)
        if next_step(Direction.UP, node.domain, node.op_type, start, self.target) is None:
            return None
        return start

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        """Take the next step of a node's operator from `version` on; None if there is none up to the target.

        Raises CannotMigrate if the step is missing or refuses, or if its adapter refuses or fails.
        """
        domain, operator = node.domain, node.op_type
        if not same_domain(domain, self.domain):
            return None
        step = next_step(Direction.UP, domain, operator, version, self.target)
        if step is None:
            return None
        to = step if isinstance(step, int) else step.version
        where = Where(scope.path, node_name(node), operator, version, to)
        if isinstance(step, int):
            raise CannotMigrate(
                f"onnx-migrate has no adapter from this version to {operator}-{to} yet", code="no-adapter", where=where,
                hint=Advice(f"migrate to opset {to - 1} instead", options={"opset": to - 1}),
            )  # fmt: skip
        if step.refusal:
            raise CannotMigrate(step.refusal, code="no-equal", where=where, hint=step.hint)
        rewriter = self._rewriter(node, scope, to, where)
        rewriter.default_reason = step.reason
        return take(step, rewriter)

    def result_version(self, opset: int) -> int:
        """Return the target."""
        return self.target

    def _rewriter(self, node: onnx.NodeProto, scope: Scope, to: int, where: Where) -> Rewriter:
        rewriter = Rewriter(node, scope, to, self.target, where, self.keep)
        if self.domain:
            rewriter.onnx_opset = self._onnx_opsets.get(scope.function) or self.beside
        return rewriter
