"""Brings every node of a model down to an older opset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onnx_migrate.advice import Advice
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.opset_bounds import OpsetBounds
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.messages import count_of
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.standard.opsets import newest_onnx_opset

if TYPE_CHECKING:
    from onnx_migrate.engine.steps.lower_model import Lowered
    from onnx_migrate.engine.steps.step_visitor import LoweringRefusal

__all__ = ["LowerOpset"]


@register_pass
@dataclass(frozen=True)
class LowerOpset(Pass):
    """Lower the main graph, all sub-graphs and local functions to an older ai.onnx opset; older bodies stay.

    A function whose body needs types, ranks or values that only its callers know is inlined. Raises CannotMigrate,
    naming the nearest opset that can be reached, if a node has no equal at the target.
    """

    name: ClassVar[str] = "lower_opset"
    title: ClassVar[str] = "lowering the opset"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    opset: int
    nearest: bool = False
    """Whether to accept the nearest reachable opset if `opset` cannot be reached; a warning reports it."""
    keep_ir: bool = False
    """Whether the IR version stays; else it becomes the oldest version that has all features of the lowered model."""
    bounds: OpsetBounds | None = None
    """Reasons that may keep the model below `opset`."""
    write_out: bool = False
    """Whether to replace operators without an exact older form by close others, for example Erf below opset 9. This is for
    runtimes that would refuse the model otherwise."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Lower `model` in place; returns another one if functions were inlined."""
        lowered = False
        while newest_onnx_opset(model.proto) > (opset := self._bound(model, log)):
            model, lowered = self._lower(model, opset, log).model, True
            if newest_onnx_opset(model.proto) > opset:
                break  # the nearest that can be reached
        newest = wished = newest_onnx_opset(model.proto)
        if self.bounds is not None:  # the opset at which no node is computed wrongly need not be reached
            wished = self.bounds.without_faults(model, newest, log, self.name)
        if wished < newest:
            model, lowered = self._lower(model, wished, log, nearest=True).model, True
        if lowered and not self.keep_ir:
            from onnx_migrate.rewrite.older_ir.lower_ir import fit_ir_version

            fit_ir_version(model, log, self.name)
        return model

    def _bound(self, model: Model, log: ChangeLog) -> int:
        """Return the opset to reach; the nodes that a lowering writes may limit it further."""
        if self.bounds is None:
            return self.opset
        return self.bounds.to_lower(model, self.opset, log, self.name)

    def _lower(self, model: Model, opset: int, log: ChangeLog, *, nearest: bool = False) -> Lowered:
        """Lower to an opset, or to the nearest one if `nearest` allows it."""
        # Imported here, as a migration that only lifts needs neither.
        from onnx_migrate.engine.steps.lower import OLDEST
        from onnx_migrate.engine.steps.lower_model import lower_model

        nearest = nearest or self.nearest
        if opset < OLDEST:
            raise UsageError(
                f"models are not lowered to opset {opset}: opsets below {OLDEST} cannot be run, so nothing could be"
                " verified",
                code="no-such-opset",
                hint=f"ask for opset {OLDEST} or above",
            )
        whole, trial = model.copy() if nearest else model, log.trial()
        lowered = lower_model(model, opset, log, self.name, write_out=self.write_out)
        if not lowered.refusals:
            return lowered
        refusal = _refusal(lowered.refusals)
        if not nearest:
            raise refusal
        # The log must not have changes of the failed trial.
        trial.roll_back()
        reached = max(refused.nearest for refused in lowered.refusals)
        log.note(
            self.name,
            "not-lowered",
            f"opset {opset} cannot be reached, so the model has opset {reached}: {refusal.with_hint}",
            subject=refusal.where.node if refusal.where else "",
            severity="warning",
        )
        return lower_model(whole, reached, log, self.name, write_out=self.write_out)


def _refusal(refusals: Sequence[LoweringRefusal]) -> CannotMigrate:
    """Return the error for the refusal that keeps the model at the newest opset."""
    nearest = max(refusal.nearest for refusal in refusals)
    # The message names the node that blocks all older opsets.
    first = next(refusal.error for refusal in refusals if refusal.nearest == nearest)
    others = len(refusals) - 1
    more = f" (refused, and {count_of(others, 'more node')})" if others else ""
    return CannotMigrate(
        f"{first.reason}{more}",
        code=first.code,
        where=first.where,
        hint=(
            *first.advice,
            Advice(f"opset {nearest} can be reached", options={"opset": nearest}),
        ),
    )
