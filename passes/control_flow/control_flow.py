"""The pass that writes If, Loop, Scan, sequences and optionals with plain nodes, and recurrent operators on request."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import onnx

from onnx_migrate.engine.fitting_passes import FittingPass
from onnx_migrate.engine.incompatibility import Incompatibility
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.engine.steps.decompose_model import body_scopes
from onnx_migrate.engine.steps.node_steps import where_of
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal, StepVisitor
from onnx_migrate.errors import CannotMigrate, MigrateError
from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import (
    FunctionKey,
    all_nodes,
    called,
    function_key,
    names_read,
    nested_nodes,
    output_names,
)
from onnx_migrate.model.model import Model
from onnx_migrate.model.validity.functions import callees_first
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.opsets import onnx_opset
from onnx_migrate.standard.schema import CONTROL_FLOW, RECURRENT, SEQUENCES, is_onnx
from onnx_migrate.standard.targets import Targets

from . import branches, loops, recurrent, sequences  # noqa: F401 - they register what is done with each operator
from .evaluate import Bounds, Env, Evaluator, Expansion
from .hoist import hoist_constants

__all__ = ["ControlFlow"]

_PLAIN = CONTROL_FLOW | SEQUENCES


@register_pass
@dataclass(frozen=True)
class ControlFlow(FittingPass):
    """Write If, Loop, Scan, sequences and optionals of the main graph with plain nodes, or recurrent operators alone.

    The pass inlines functions that have such nodes. Raises CannotMigrate for the first node that it cannot replace. The
    code is `control-flow`, `unroll-limit`, `sequences`, or names the fact that a form needs.
    """

    name: ClassVar[str] = "control_flow"
    title: ClassVar[str] = "replacing branches and loops by plain nodes"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    operators: ClassVar[frozenset[str]] = _PLAIN | RECURRENT
    wanted: frozenset[str] = _PLAIN
    """The operators that this pass replaces by others, together with the control flow around them."""
    wished: frozenset[str] = frozenset()
    """The operators that this pass replaces only if it can replace all their nodes; else they stay: note `control-flow-kept`."""
    nodes: int = 2000
    """The most nodes that are written for one node of the main graph."""
    extra: int = 10_000_000
    """The most multiplications that both branches of an If may take."""
    best_effort: bool = False
    """Whether a model with a node that the pass refuses stays unchanged, with a warning of code `not-fitted`."""
    targets: Targets | None = None
    """The runtimes that lack some of the operators."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined, or if nothing was done."""
        # The wished ones are tried on a copy, because they may stay if that fails.
        if _any_is(all_nodes(model.proto), self.wished):
            trial = log.trial()
            both = replace(self, wanted=self.wanted | self.wished, wished=frozenset(), best_effort=False)
            try:
                return both.run(model.copy(), log)
            except CannotMigrate as refused:
                trial.roll_back()
                log.note(self.name, "control-flow-kept", str(refused), severity="warning")
        if not _any_is(all_nodes(model.proto), self.wanted):
            return model
        whole, trial = model.copy() if self.best_effort else model, log.trial()
        model = self._inlined(model, log)
        scope = body_scopes(model)[0]
        opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version)
        visitor = _Visitor(model.proto, log, self)
        driver = Driver(visitor)
        driver.body(scope, opset or 1)
        visitor.check_outputs(scope)
        refusals = [refusal.error for refusal in visitor.refusals]
        if refusals and self.best_effort:
            trial.roll_back()
            for error in refusals:
                log.note(
                    self.name,
                    "not-fitted",
                    error.with_hint,
                    subject=error.where.node if error.where else "",
                    severity="warning",
                )
            # With best effort, the model stays unchanged.
            return whole
        if refusals:
            raise _one(refusals)
        remove_dead_values(model.proto, driver.dead_values | visitor.written)
        self._report(model, visitor.expansions, log)
        return model

    def objections(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return nothing: the pass `fit_operators` tells of operators that a runtime lacks."""
        return ()

    def _inlined(self, model: Model, log: ChangeLog) -> Model:
        """Inline the functions that have such nodes, or call those that do."""
        functions = {function_key(function): function for function in model.proto.functions}
        calls = {
            key: {called(node) for node in nested_nodes(function.node)} & functions.keys()
            for key, function in functions.items()
        }
        wanted: set[FunctionKey] = set()
        # A function that calls one with control flow must be inlined, too.
        for key in callees_first(calls):
            if not calls[key].isdisjoint(wanted) or _any_is(nested_nodes(functions[key].node), self.wanted):
                wanted.add(key)
        if not wanted:
            return model
        log.note(
            self.name,
            "inlined",
            f"inlined {count_of(len(wanted), 'local function')} with control flow at their calls",
        )
        return inline_functions(model, wanted)

    def _report(self, model: Model, expansions: list[Expansion], log: ChangeLog) -> None:
        """Report the replacement of each node, and how many of its nodes remain after cleanup."""
        # The cleanup of dead values may have removed some of the nodes.
        alive = {name for node in model.proto.graph.node for name in node.output}
        for expansion in expansions:
            # Cleanup removes nodes that no output depends on, so only the others count.
            nodes = sum(not alive.isdisjoint(node.output) for node in expansion.written)
            log.note(
                self.name,
                "written-out",
                f"{expansion.where}: {expansion.what}; {count_of(nodes, 'node')}",
                subject=expansion.where.node,
            )


def _any_is(nodes: Iterable[onnx.NodeProto], operators: frozenset[str]) -> bool:
    """Return whether one of these nodes has one of these operators of ai.onnx."""
    return any(node.op_type in operators and is_onnx(node.domain) for node in nodes)


def _one(errors: list[MigrateError]) -> CannotMigrate:
    """Return one error for all refusals, in the words of the first."""
    first, others = errors[0], [error.where for error in errors[1:] if error.where]
    names = ", ".join(f"{where.node!r} ({where.operator})" for where in others[:5])
    more = (
        f"; {count_of(len(others), 'more node')} refused: {names}{', …' if len(others) > 5 else ''}"
        if others
        else ""
    )
    return CannotMigrate(f"{first.reason}{more}", code=first.code, where=first.where, hint=first.advice)


class _Visitor(StepVisitor):
    """Evaluates the nodes of the main graph in order, and learns the types that follow from what was written."""

    opens_subgraphs: ClassVar[bool] = True
    all_dims: ClassVar[bool] = True

    def __init__(self, proto: onnx.ModelProto, log: ChangeLog, options: ControlFlow) -> None:
        super().__init__(proto, log, options.name)
        self.options = options
        self.expansions: list[Expansion] = []
        self.written: set[str] = set()
        """The values of nodes that were written, which may have no reader."""
        self._env: Env = Env()
        self._newly_known: set[str] = set()

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        """Return the opset of a node that this pass replaces; for any other node, learn facts about its outputs."""
        wanted = self.options.wanted
        inside = nested_nodes([node]) if node.op_type in CONTROL_FLOW else [node]
        if is_onnx(node.domain) and _any_is(inside, wanted):
            return opset
        # The node reads a sequence that exists no longer as a value.
        if any(name in self._env for name in names_read(node)):
            return opset
        # Facts about replaced nodes reach the nodes behind them.
        if not self._newly_known.isdisjoint(node.input):
            facts = self._values[id(scope.body)]
            facts.refine(node, opset)
            facts.add(node)
            self._newly_known.update(filter(None, node.output))
        return None

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> LoweringRewriter:
        """Replace a node by its expansion; remember the content of sequences and optionals."""
        rw = self.rewriter(node, scope, where_of(node, scope, version), version)
        bounds = Bounds(self.options.nodes, self.options.extra)
        at = Evaluator(rw, self._values[id(scope.body)], bounds, self.options.wanted | _PLAIN)
        # Constants inside bodies would be copied for each round.
        hoist_constants(node, scope)
        first, outputs = len(rw.preceding), list(node.output)
        held = at.end(at.evaluate(node, self._env))
        self._env.update(held)
        self._newly_known.update(outputs)
        self.written.update(
            name for written_node in (*rw.preceding[first:], *rw.following) for name in written_node.output
        )
        self.expansions += at.expansions
        rw.default_reason = at.expansions[-1].what if at.expansions else _HELD
        rw.exactness = rw.exactness or Exactness.EXACT
        return rw

    def refusal(self, error: CannotMigrate) -> LoweringRefusal:
        """Return the record of a node that this pass refuses."""
        targets, operator = self.options.targets, error.where.operator if error.where else ""
        who = targets.lacks("", operator) if targets is not None else ()
        if who:
            reason = f"{listed(map(str, who))} {'have' if len(who) > 1 else 'has'} no {operator}, and {error.reason}"
            error = CannotMigrate(reason, code=error.code, where=error.where, hint=error.advice)
        return LoweringRefusal(error, None, 0)

    def check_outputs(self, scope: Scope) -> None:
        """Refuse sequences and optionals that are outputs of the model."""
        all_gone = self.options.wanted >= SEQUENCES
        for name in output_names(scope.body):
            if name in self._env or (all_gone and scope.value_type(name).container):
                self.handle_refusal(
                    CannotMigrate(
                        f"output {name!r} of the model is a sequence or optional, whose type must stay",
                        code="sequences",
                        hint="let the model return the tensors themselves",
                    )
                )


_HELD = "its content is known, and the nodes that read it get the content directly"
