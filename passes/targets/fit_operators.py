"""Writes the operators that a target lacks with those that it has, at the opset that the model has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.advice import advice_of
from onnx_migrate.engine.fitting_passes import FittingPass
from onnx_migrate.engine.incompatibility import Incompatibility, counted
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.engine.steps.registry import decomposition_of
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import Scope
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import all_nodes, called, function_key, node_label, operators_of
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.schema import is_onnx, newest_opset
from onnx_migrate.standard.targets import Targets

from ..left import decompose_or_leave, leave_or_raise
from ..standard.standard import import_onnx
from .constants import store_constants
from .misfits import lack_of, misfits_of, newer_forms, types_taken, where_to_find
from .model_limits import check_model_limits, check_versions, model_misfits, nodes_in_scopes

__all__ = ["FitOperators"]

_BESIDE = 17
"""The opset of ai.onnx for a body that imports none, if no target limits it."""


@register_pass
@dataclass(frozen=True)
class FitOperators(FittingPass):
    """Decompose the nodes that the targets do not take: operators that they lack, values of attributes, element types.

    The opset stays: steps down write nodes for an older opset, and steps up convert these to the opset of the model.

    Raises CannotMigrate for a node that other operators cannot replace, code `target-lacks`. The code is another one if the
    decomposition needs an unknown fact, for example `needs-shape`.
    """

    name: ClassVar[str] = "fit_operators"
    title: ClassVar[str] = "replacing operators that the target runtime lacks"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset(
        {ModelProperty.SORTED, ModelProperty.TARGET_OPSET}
    )
    targets: Targets
    best_effort: bool = False
    """Whether a node that other operators cannot replace stays, with a warning of code `not-fitted`."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined."""
        self._import_onnx(model)
        self._inline(model, log)
        self._store_constants(model, log)
        self._check(model, log)
        before = len(log.changes)
        model = self._decomposed(model, log)
        if len(log.changes) > before:
            # Of a node with several outputs all are written, and the forms of those that nothing reads need not fit.
            remove_dead_values(
                model.proto, {name for node in all_nodes(model.proto) for name in node.output if name}
            )
            self._check(model, log)
        return model

    def _import_onnx(self, model: Model) -> None:
        """Let bodies that import only other domains import ai.onnx, if a target lacks operators of theirs."""
        targets = self.targets
        lacking = frozenset(
            domain
            for domain, name in _foreign_operators(model)
            if targets.lacks(domain, name) or targets.unsure_of(domain, name)
        )
        if lacking:
            import_onnx(model.proto, lacking, min(self.targets.opset or _BESIDE, newest_opset()))

    def _check(self, model: Model, log: ChangeLog) -> None:
        """Refuse, or warn of, limits of the targets on the model as a whole, and versions that are too old."""
        for check in (check_model_limits, check_versions):
            refusal = check(model, self.targets)
            if refusal is not None:
                leave_or_raise(refusal, log, self.name, best_effort=self.best_effort)

    def _decomposed(self, model: Model, log: ChangeLog) -> Model:
        """Return the model without the nodes that do not fit. In a best effort, nodes stay that no decomposition can replace."""
        unsure: set[Where] = set()
        misfits, doubts = misfits_of(self.targets), self._doubts(model)

        def unfit(node: onnx.NodeProto, scope: Scope) -> str | None:
            reason = misfits(node, scope)
            # It is not known whether the target has the operator.
            if reason is None and (node.domain, node.op_type) in doubts:
                unsure.add(Where(scope.path, node_label(node), node.op_type))
                return doubts[node.domain, node.op_type]
            return reason

        def may_stay(refused: set[Where]) -> bool:
            # A node in doubt may stay if it cannot be replaced.
            return self.best_effort or refused <= unsure

        fitted = decompose_or_leave(
            model,
            unfit,
            log,
            self.name,
            may_stay if self.best_effort or doubts else None,
            newer=newer_forms(self.targets),
            types=types_taken(self.targets),
        )
        if fitted.refusals:
            raise self._refusal(fitted.refusals)
        return fitted.model

    def _doubts(self, model: Model) -> dict[tuple[str, str], str]:
        """Return each operator of other domains that a target may lack and that onnx-migrate can replace, with the reason."""
        doubts = {}
        for domain, operator in sorted(_foreign_operators(model)):
            form = decomposition_of(domain, operator)
            unsure = self.targets.unsure_of(domain, operator)
            if form is not None and not form.refusal and unsure:
                doubts[domain, operator] = (
                    f"{listed(map(str, unsure))} is not known to have {domain}.{operator}"
                )
        return doubts

    def objections(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return the reasons why the targets do not support nodes of this model, including the versions of their operators."""
        targets, proto = self.targets, model.proto
        functions = {function_key(function) for function in proto.functions}
        unfit, newer, misfits = misfits_of(targets), newer_forms(targets), []
        if targets.without_functions and functions:
            # Functions are a limit of the whole model.
            who = " and ".join(map(str, targets.without_functions))
            misfits.append(Incompatibility(f"{len(functions)} local functions, which {who} does not support"))
        misfits += model_misfits(model, targets)
        used = operators_of(all_nodes(proto))
        if not any(
            # Most models have only operators that are supported.
            targets.lacks(*key)
            or targets.limits(*key)
            or targets.newest_version(*key)
            or targets.oldest_version(*key)
            for key in used
        ):
            return counted(misfits)
        for node, scope, opset in nodes_in_scopes(model):
            reason = None if called(node) in functions else unfit(node, scope)
            if reason is None and newer is not None and is_onnx(node.domain):
                reason = newer(node.op_type, opset)
            if reason is not None:
                misfits.append(Incompatibility(reason, Where(scope.path, node_label(node), node.op_type), 1))
        return counted(misfits)

    def _inline(self, model: Model, log: ChangeLog) -> None:
        """Replace all calls of local functions by their bodies if a target supports none."""
        without = self.targets.without_functions
        if not (without and model.proto.functions):
            return
        count = len(model.proto.functions)
        inline_functions(model)
        who = f"{' and '.join(map(str, without))} take{'' if len(without) > 1 else 's'} none"
        functions = count_of(count, "local function")
        log.note(self.name, "inlined", f"inlined {functions} at their calls, as {who}")

    def _store_constants(self, model: Model, log: ChangeLog) -> None:
        lacking = self.targets.lacks("", "Constant")
        count = store_constants(model.proto) if lacking else 0
        if count:
            message = f"made initializers of {count_of(count, 'Constant')}"
            log.note(self.name, "constants-stored", f"{message}, as {lack_of(lacking, 'Constant')}")

    def _refusal(self, refusals: tuple[LoweringRefusal, ...]) -> CannotMigrate:
        """Return one error for all refusals, in the words of the first."""
        first = refusals[0].error
        operator = first.where.operator if first.where else ""
        # One error names several nodes, so that one run shows all.
        others = [refusal.error.where for refusal in refusals[1:] if refusal.error.where]
        more = ""
        if others:
            names = ", ".join(f"{where.node!r} ({where.operator})" for where in others[:5])
            more = f"; {count_of(len(others), 'more node')} refused: {names}"
            more += ", …" if len(others) > 5 else ""
        source = where_to_find(self.targets, "", operator)
        return CannotMigrate(
            f"{first.reason}{more}",
            code=first.code,
            where=first.where,
            hint=(*advice_of(source, tried=True), *first.advice),
        )


def _foreign_operators(model: Model) -> set[tuple[str, str]]:
    """Return the domain and operator of all nodes of other domains than ai.onnx."""
    return {key for key in operators_of(all_nodes(model.proto)) if not is_onnx(key[0])}
