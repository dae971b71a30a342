"""Writes the operators that a target lacks with those that it has, at the opset that the model has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.incompatibility import Incompatibility, counted
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.decompose_model import body_scopes, decompose_model
from onnx_migrate.engine.steps.step_visitor import LoweringRefusal
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.messages import count_of, listed
from onnx_migrate.model.graphs import all_nodes, called, function_key, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx, signature_at
from onnx_migrate.standard.targets import Targets

from .constants import store_constants
from .misfits import misfits_of, newer_forms, types_taken, where_to_find
from .model_limits import check_model_limits, model_misfits

__all__ = ["FitOperators"]


@register_pass
@dataclass(frozen=True)
class FitOperators(Pass):
    """Decompose the nodes that the targets do not take: operators that they lack, values of attributes, element types.

    The opset stays: what the steps down write for an older opset is lifted again. Raises CannotMigrate for a node that
    cannot be written with other operators, code `target-lacks` or what its decomposition needs to know.
    """

    name: ClassVar[str] = "fit_operators"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset(
        {ModelProperty.SORTED, ModelProperty.TARGET_OPSET}
    )
    for_targets: ClassVar[bool] = True
    targets: Targets

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place; returns another one if functions were inlined."""
        self._inline(model, log)
        self._store_constants(model, log)
        check_model_limits(model, self.targets)
        before = len(log.changes)
        fitted = decompose_model(
            model,
            misfits_of(self.targets),
            log,
            self.name,
            newer=newer_forms(self.targets),
            types=types_taken(self.targets),
        )
        if fitted.refusals:
            raise self._refusal(fitted.refusals)
        self._check_versions(fitted.model)
        if len(log.changes) > before:
            check_model_limits(fitted.model, self.targets)
        return fitted.model

    def objections(self, model: Model) -> tuple[Incompatibility, ...]:
        """Return why the targets do not take nodes as they are, the versions of their operators included."""
        targets, proto = self.targets, model.proto
        functions = {function_key(function) for function in proto.functions}
        unfit, newer, found = misfits_of(targets), newer_forms(targets), []
        if targets.without_functions and functions:
            who = " and ".join(map(str, targets.without_functions))
            found.append(Incompatibility(f"{len(functions)} local functions, of which {who} takes none"))
        found += model_misfits(model, targets)
        used = {(node.domain, node.op_type) for node in all_nodes(proto)}
        if not any(
            targets.lacks(*key)
            or targets.limits(*key)
            or targets.newest_version(*key)
            or targets.oldest_version(*key)
            for key in used
        ):
            return counted(found)
        bodies = scopes(proto, model.weights, result_ir_version=max(4, proto.ir_version))
        for top, (_, opset) in zip(bodies, body_opsets(proto), strict=True):
            for scope in top.nested():
                for node in scope.body.node:
                    reason = None if called(node) in functions else unfit(node, scope)
                    if reason is None and newer is not None and is_onnx(node.domain):
                        reason = newer(node.op_type, opset or 0)
                    if reason is not None:
                        found.append(
                            Incompatibility(reason, Where(scope.path, node_label(node), node.op_type), 1)
                        )
        return counted(found)

    def _check_versions(self, model: Model) -> None:
        """Refuse a node of an older version than the targets take: their opset has no newer one."""
        targets, proto = self.targets, model.proto
        used = {(node.domain, node.op_type) for node in all_nodes(proto)}
        first = {key: found for key in used if (found := targets.oldest_version(*key))}
        if not first:
            return
        functions = {function_key(function) for function in proto.functions}
        for top, (_, opset) in zip(body_scopes(model), body_opsets(proto), strict=True):
            for scope in top.nested():
                for node in scope.body.node:
                    form = signature_at(node.domain, node.op_type, opset or 0)
                    bound = first.get((node.domain, node.op_type))
                    if bound is None or form is None or called(node) in functions:
                        continue
                    if form.since_version < bound[0]:
                        raise CannotMigrate(
                            f"{bound[1]} takes {node.op_type} from version {bound[0]} on, not {form.since_version}",
                            code="target-lacks",
                            where=Where(scope.path, node_label(node), node.op_type, form.since_version),
                        )

    def _inline(self, model: Model, log: ChangeLog) -> None:
        """Replace all calls of local functions by their bodies if a target takes none."""
        without = self.targets.without_functions
        if not (without and model.proto.functions):
            return
        count = len(model.proto.functions)
        inline_functions(model)
        who = f"{' and '.join(map(str, without))} take{'' if len(without) > 1 else 's'} none"
        functions = count_of(count, "local function")
        log.note(self.name, "inlined", f"inlined {functions} at their calls, as {who}")

    def _store_constants(self, model: Model, log: ChangeLog) -> None:
        without = self.targets.lacks("", "Constant")
        count = store_constants(model.proto) if without else 0
        if count:
            who = f"{listed(map(str, without))} {'have' if len(without) > 1 else 'has'} no Constant"
            log.note(
                self.name, "constants-stored", f"made initializers of {count_of(count, 'Constant')}, as {who}"
            )

    def _refusal(self, refusals: tuple[LoweringRefusal, ...]) -> CannotMigrate:
        """Return one error for all refusals, in the words of the first."""
        first = refusals[0].error
        operator = first.where.operator if first.where else ""
        others = [item.error.where for item in refusals[1:] if item.error.where]
        more = ""
        if others:
            names = ", ".join(f"{where.node!r} ({where.operator})" for where in others[:5])
            more = f"; {count_of(len(others), 'more node')} refused: {names}"
            more += ", …" if len(others) > 5 else ""
        hints = [where_to_find(self.targets, "", operator), first.hint]
        return CannotMigrate(
            f"{first.reason}{more}",
            code=first.code,
            where=first.where,
            hint="; ".join(hint for hint in hints if hint),
        )
