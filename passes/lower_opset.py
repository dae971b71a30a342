"""Brings every node of a model down to an older opset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import onnx

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.engine.inlining import inline_functions
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.engine.steps.lower import Lower, LoweringRefusal
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.model.graphs import FunctionKey
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.spec.opsets import onnx_opset, set_onnx_opset

from .ir_version import fit_ir_version

__all__ = ["OLDEST", "LowerOpset"]

OLDEST = 7
"""ONNX Runtime has no kernels below opset 7 for Add, Mul, Gemm and many more, so nothing there could be verified."""

_NEEDS_CALLER = frozenset(("needs-type", "needs-rank", "needs-shape", "needs-value"))
"""Codes of refusals that inlining a function may resolve, since a call knows more than the function."""


@register_pass
@dataclass(frozen=True)
class LowerOpset(Pass):
    """Lower the main graph, all sub-graphs and local functions to an older ai.onnx opset; older bodies stay.

    A function whose body needs types, ranks or values that only its callers know is inlined. Raises CannotMigrate,
    naming the nearest opset that can be reached, if a node has no equal at the target.
    """

    name: ClassVar[str] = "lower_opset"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    opset: int
    keep_ir: bool = False
    """Whether the IR version stays; else it is lowered to what the result needs."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Lower `model` in place; returns another one if functions were inlined."""
        newest = max((version for _, version in _bodies(model.proto) if version is not None), default=0)
        if newest <= self.opset:
            return model
        if self.opset < OLDEST:
            raise UsageError(
                f"models are not lowered to opset {self.opset}: opsets below {OLDEST} cannot be run, so nothing could be"
                " verified",
                code="no-such-opset",
                hint=f"ask for opset {OLDEST} or above",
            )
        trial = log.trial()
        while True:
            whole = model.copy() if model.proto.functions else model
            refusals = self._lower(model, log)
            inlined = {
                item.function
                for item in refusals
                if item.function is not None and item.error.code in _NEEDS_CALLER
            }
            if not inlined:
                break
            trial.roll_back()
            model = self._inline(whole, inlined, log)
            trial = log.trial()
        if refusals:
            raise _refusal(refusals)
        for owner, version in _bodies(model.proto):
            if version is not None and version > self.opset:
                set_onnx_opset(owner, self.opset)
        if not self.keep_ir:
            fit_ir_version(model, log, self.name)
        return model

    def _lower(self, model: Model, log: ChangeLog) -> list[LoweringRefusal]:
        """Lower all bodies in place; the model is of no use if there are refusals."""
        proto = model.proto
        driver = Driver(lower := Lower(proto, self.opset, log))
        found = scopes(proto, model.weights, result_ir_version=max(4, proto.ir_version))
        for scope, (_, version) in zip(found, _bodies(proto), strict=True):
            if version is not None and version > self.opset:
                driver.body(scope, version)
        if not lower.refusals:
            remove_dead_values(proto, driver.dead_values)
        return lower.refusals

    def _inline(self, model: Model, functions: set[FunctionKey], log: ChangeLog) -> Model:
        names = sorted(f"{domain}:{name}" for domain, name, *_ in functions)
        log.note(
            self.name,
            "inlined",
            f"inlined the function{'s' if len(names) > 1 else ''} {', '.join(names)}: lowering the body needs what only"
            " the calls say of its inputs and attributes",
            subject=names[0],
        )
        inline_functions(model, functions)
        return model


def _bodies(proto: onnx.ModelProto) -> list[tuple[onnx.ModelProto | onnx.FunctionProto, int | None]]:
    owners: list[onnx.ModelProto | onnx.FunctionProto] = [proto, *proto.functions]
    return [(owner, onnx_opset(owner.opset_import, ir_version=proto.ir_version)) for owner in owners]


def _refusal(refusals: list[LoweringRefusal]) -> CannotMigrate:
    """Return the error for the refusal that keeps the model at the newest opset."""
    nearest = max(item.nearest for item in refusals)
    first = next(item.error for item in refusals if item.nearest == nearest)
    others = len(refusals) - 1
    more = f", and {others} more node{'s' if others > 1 else ''}" if others else ""
    hint = f"{first.hint}; " if first.hint else ""
    return CannotMigrate(
        f"{first.reason}{more and f' (refused{more})'}",
        code=first.code,
        where=first.where,
        hint=f"{hint}opset {nearest} can be reached",
    )
