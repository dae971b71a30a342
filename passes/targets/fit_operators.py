"""Writes the operators that a target lacks with those that it has, at the opset that the model has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from onnx_migrate.engine.inlining import inline_functions
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.decompose_model import decompose_model
from onnx_migrate.engine.steps.lower import LoweringRefusal
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.spec.targets import Targets

from .misfits import misfits_of, newer_forms, where_to_find

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
        fitted = decompose_model(
            model, misfits_of(self.targets), log, self.name, newer=newer_forms(self.targets)
        )
        if fitted.refusals:
            raise self._refusal(fitted.refusals)
        return fitted.model

    def _inline(self, model: Model, log: ChangeLog) -> None:
        """Replace all calls of local functions by their bodies if a target takes none."""
        without = self.targets.without_functions
        if not (without and model.proto.functions):
            return
        count = len(model.proto.functions)
        inline_functions(model)
        who = f"{' and '.join(map(str, without))} take{'' if len(without) > 1 else 's'} none"
        functions = f"{count} local function{'s' if count > 1 else ''}"
        log.note(self.name, "inlined", f"inlined {functions} at their calls, as {who}")

    def _refusal(self, refusals: tuple[LoweringRefusal, ...]) -> CannotMigrate:
        """Return one error for all refusals, in the words of the first."""
        first = refusals[0].error
        operator = first.where.operator if first.where else ""
        others = [item.error.where for item in refusals[1:] if item.error.where]
        more = ""
        if others:
            names = ", ".join(f"{where.node!r} ({where.operator})" for where in others[:5])
            more = f"; {len(others)} more node{'s' if len(others) > 1 else ''} refused: {names}"
            more += ", …" if len(others) > 5 else ""
        hints = [where_to_find(self.targets, "", operator), first.hint]
        return CannotMigrate(
            f"{first.reason}{more}",
            code=first.code,
            where=first.where,
            hint="; ".join(hint for hint in hints if hint),
        )
