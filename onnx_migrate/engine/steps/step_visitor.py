"""The base of lowering and decomposition: the knowledge about the values of a body, a step at a node, and the refusals."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import ClassVar

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lost_types import fit_types, has_lost_types
from onnx_migrate.engine.steps.node_steps import node_name, take, where_of
from onnx_migrate.engine.steps.registry import decomposition_of, next_step
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.errors import CannotMigrate, InvalidModel, MigrateError, Where
from onnx_migrate.facts.node_inference import is_unknown
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shape_arithmetic import OPERATORS
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.model.graphs import FunctionKey, called, function_key
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Visitor
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.opsets import body_opsets

__all__ = ["LoweringRefusal", "StepVisitor"]

_FOLLOWED = OPERATORS | {"Size"}
"""The operators whose outputs are computed if their inputs are known."""


@dataclass(frozen=True)
class LoweringRefusal:
    """The error for a node, the function that contains it (None in the main graph), and the oldest opset that it can have."""

    error: MigrateError
    function: FunctionKey | None
    nearest: int


@dataclass
class StepVisitor(Visitor):
    """Knows the constants of the bodies that it is in, from before any node was rewritten, and takes steps.

    A node that a step refuses stays unchanged; `refusals` has them all, in the order of the nodes.
    """

    proto: onnx.ModelProto
    log: ChangeLog
    pass_name: str
    domain: str = ""
    """The domain whose nodes are rewritten, "" for ai.onnx."""
    refusals: list[LoweringRefusal] = field(default_factory=list)
    all_dims: ClassVar[bool] = False
    """Whether to refine shapes that have an unknown dim."""

    def __post_init__(self) -> None:
        self._functions: set[FunctionKey] = {function_key(function) for function in self.proto.functions}
        self._values: dict[int, ValueFacts] = {}
        self._producers = Producers()
        keys = [None, *map(function_key, self.proto.functions)]
        self._opsets = dict(zip(keys, (opset for _, opset in body_opsets(self.proto)), strict=True))

    def enter(self, scope: Scope) -> None:
        """Compute the constants of a body before any of its nodes is rewritten."""
        outer = self._values.get(id(scope.parent.body)) if scope.parent else None
        values = ValueFacts(scope, self._producers, followed=_FOLLOWED, all_dims=self.all_dims, outer=outer)
        self._values[id(scope.body)] = values
        opset = None if self.domain else self._opsets.get(scope.function)
        values.find_all(opset, lambda node: self._learn_types(node, scope, opset or 0))

    def _learn_types(self, node: onnx.NodeProto, scope: Scope, opset: int) -> None:
        """Enter the types of the outputs of a foreign node. They come from its decomposition, which is then dropped."""
        form = None if self.calls_function(node) else decomposition_of(node.domain, node.op_type)
        if (
            form is None
            or form.refusal
            # Types that are known need no decomposition.
            or not any(is_unknown(scope.value_type(output_name)) for output_name in node.output)
        ):
            return
        # The trial must not change the node.
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        for index, name in enumerate(copy.input):
            source = scope.constant_source(name) if name else None
            if isinstance(source, TensorProto) and source.data_location == TensorProto.EXTERNAL:
                copy.input[index] = scope.names.fresh(name)  # no weights are read for this
                scope.record_type(copy.input[index], scope.value_type(name))
        facts = ValueFacts(scope, self._producers, outer=self._values[id(scope.body)])
        rewriter = LoweringRewriter(copy, scope, opset, opset, where_of(node, scope, opset), facts)
        rewriter.of_onnx = True
        # A refusal here only means that the types stay unknown; the lowering itself reports it later.
        with suppress(MigrateError):
            take(form, rewriter)

    def leave(self, scope: Scope) -> None:
        """Drop the constants of a body."""
        del self._values[id(scope.body)]

    def calls_function(self, node: onnx.NodeProto) -> bool:
        """Return whether a node calls a local function of the model."""
        return bool(self._functions) and called(node) in self._functions

    def where(self, node: onnx.NodeProto, scope: Scope, leaves: int, to: int) -> Where:
        """Return the place of a node whose version `leaves` becomes `to`."""
        return Where(scope.path, node_name(node), node.op_type, leaves, to)

    def rewriter(
        self, node: onnx.NodeProto, scope: Scope, where: Where, version: int, target: int | None = None
    ) -> LoweringRewriter:
        """Return the rewriter of a node. It writes nodes of `version`; `target` is the final opset, if that is another."""
        values = self._values[id(scope.body)]
        new_rewriter = LoweringRewriter(
            node, scope, version, version if target is None else target, where, values
        )
        new_rewriter.of_onnx = not self.domain
        return new_rewriter

    def next_down(self, node: onnx.NodeProto, scope: Scope, version: int, end: int) -> Step | int | None:
        """Return the first step of a node from `version` down to opset `end` that acts, or that must fit its types.

        Returns None if there is none, and the since_version as an int if no step is registered for it.
        """
        return next_step(
            Direction.DOWN,
            node.domain,
            node.op_type,
            version,
            end,
            lambda step: has_lost_types(step, node, scope),
        )

    def step_down(self, step: Step, node: onnx.NodeProto, scope: Scope, target: int) -> LoweringRewriter:
        """Take one step of a node down towards `target`, between Casts if its types are lost."""
        where = self.where(node, scope, step.version, step.version - 1)
        rewriter = self.rewriter(node, scope, where, step.version - 1, target)
        rewriter.default_reason = step.reason
        if self.domain:
            rewriter.onnx_opset = self._opsets.get(scope.function) or rewriter.onnx_opset
        if has_lost_types(step, node, scope):
            fit_types(step, rewriter)
        return take(step, rewriter)

    def handle_refusal(self, error: MigrateError) -> None:
        """Record the refusal of a node, which stays unchanged; raise any other error."""
        if not isinstance(error, CannotMigrate) or isinstance(error, InvalidModel):
            raise error
        self.refusals.append(self.refusal(error))

    def refusal(self, error: CannotMigrate) -> LoweringRefusal:
        """Return the record of an error that a step of the current node raised."""
        raise error
