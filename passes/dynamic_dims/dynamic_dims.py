"""The pass that makes dims of inputs symbolic, repairs constants that hold their sizes, and declares the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.helping_passes import AdvisingPass, Retry
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.errors import CannotMigrate, MigrateError, UsageError
from onnx_migrate.facts.shapes import dims_of, dims_text, drop_value_info
from onnx_migrate.model.dims.plan import DimPlan, plans_for_batch
from onnx_migrate.model.dims.requests import DynamicAxes
from onnx_migrate.model.interface import Interface
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from ..input_dims import requested_dims
from .output_dims import declare_outputs, note_symbols

__all__ = ["DynamicDims"]

_MAX_SYMBOLS = 8
"""If a request with up to this many symbols fails, the pass searches for the largest subset of symbols that works."""


@register_pass
@dataclass(frozen=True)
class DynamicDims(AdvisingPass):
    """Set `dim_param` on the axes asked for, drop shapes recorded for the old sizes, repair constants, infer outputs.

    The pass does not check whether the model then computes the same at other sizes. Verification runs it at them.
    Raises CannotMigrate: code `frozen-dim` for a node that no repair makes correct at other sizes; `needs-rank` for an input
    without a rank. Code `frozen-output` is for an output's dim that the user named and that is one number at all sizes.
    """

    name: ClassVar[str] = "dynamic_dims"
    title: ClassVar[str] = "making dims dynamic"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    ensures: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.DYNAMIC_DIMS})
    dynamic: DynamicAxes = field(default_factory=dict)

    batch: str = ""
    """The symbol for the batch of every input; "" if the user does not ask for a dynamic batch."""

    def advice_on(self, error: MigrateError, retry: Retry) -> tuple[Advice, ...]:
        """Return the advice on an error; on a dim that is not free, the dims that can be dynamic together."""
        plan = retry.log.fact(DimPlan, "", "")
        if error.code != "frozen-dim" or plan is None:
            return error.advice
        works = self._largest_request(plan, retry)
        return _smaller_request(error, plan, works) if works else error.advice

    def _largest_request(self, plan: DimPlan, retry: Retry) -> list[str]:
        """Return symbols of a refused plan that can be dynamic together, the most that were found in time.

        The passes are run, and the result proved, for each part that is tried.
        """
        works, symbols = list[str](), list(plan.frozen_sizes)
        for symbol in sorted(symbols, key=lambda name: name not in plan.batch):
            part = plan.only({*works, symbol})
            # The whole request has failed already, so another trial of it is no use.
            if part == plan.only(symbols) or retry.is_over:
                break
            if retry.holds({step.name: self._for_dims(step, part) for step in retry.passes}):
                works.append(symbol)
        return works

    def _for_dims(self, item: Pass, plan: DimPlan) -> Pass:
        """Return a pass of the pipeline as it must run when these dims become dynamic: this pass and others get the dims."""
        if item is self:
            return replace(self, dynamic=plan.texts(), batch="")
        untyped: Any = item
        changed: Pass = replace(untyped, dynamic=plan.texts()) if hasattr(item, "dynamic") else item
        return changed

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Return the model with dynamic dims; the log gets the plan that succeeded as a fact of the whole model."""
        plan = requested_dims(self.dynamic, model, log)
        if not self.batch:
            return self._with_symbols_as_needed(model, plan, log)
        first: CannotMigrate | None = None
        for candidate in plans_for_batch(plan, Interface.of(model.proto), self.batch):
            result = self._attempt(model, candidate, log)
            if isinstance(result, Model):
                return result
            first = first or result  # the plans come most likely first
        if first is not None:
            raise first
        log.note(
            self.name,
            "open-dims",
            "the first axis of the inputs is dynamic already, so there is no fixed batch to make dynamic",
        )
        return model if plan.is_empty else self._apply(model, plan, log)

    def _with_symbols_as_needed(self, model: Model, plan: DimPlan, log: ChangeLog) -> Model:
        """Apply a plan; if that fails, apply it with one symbol for axes of the same index and length.

        Symbols that the user wrote are not replaced: UsageError, code `two-names`, says that they must be equal.
        """
        merged, others = plan.with_one_symbol(Interface.of(model.proto))
        result = self._attempt(model, plan, log)
        if isinstance(result, Model):
            return result
        if not others:
            raise self._with_largest_request(result, model, plan, log)
        with log.trial():
            with_one_symbol = self._attempt(model, merged, log)
            if not isinstance(with_one_symbol, Model):
                raise self._with_largest_request(result, model, plan, log)
            for symbol, other in others.items():
                if not plan.is_generated(symbol):
                    raise UsageError(
                        f"{symbol!r} and {other!r} must be equal lengths: {result}",
                        code="two-names",
                        hint="give both axes the same name",
                    ) from result
                message = f"{symbol} always has the same length as {other}, so both axes are called {other}"
                log.note(self.name, "one-name", message, subject=symbol)
        return with_one_symbol

    def _with_largest_request(
        self, error: CannotMigrate, model: Model, plan: DimPlan, log: ChangeLog
    ) -> CannotMigrate:
        """Return the error with a hint at the most symbols of the plan that can be dynamic together."""
        symbols = list(plan.frozen_sizes)
        if error.code != "frozen-dim" or not 1 < len(symbols) <= _MAX_SYMBOLS:
            return error
        works: list[str] = []
        for symbol in sorted(symbols, key=lambda name: name not in plan.batch):
            trial = log.trial()
            if isinstance(self._attempt(model, plan.only({*works, symbol}), log), Model):
                works.append(symbol)
            # These attempts only serve the hint, so the log must not show them.
            trial.roll_back()
        if not works:
            return error
        return CannotMigrate(
            error.reason, code=error.code, where=error.where, hint=_smaller_request(error, plan, works)
        )

    def _attempt(self, model: Model, plan: DimPlan, log: ChangeLog) -> Model | CannotMigrate:
        """Apply a plan to a copy of the model; return the error where that fails, which leaves no trace in the log."""
        try:
            with log.trial():
                return self._apply(model.copy(), plan, log)
        except CannotMigrate as error:
            return error

    def _apply(self, model: Model, plan: DimPlan, log: ChangeLog) -> Model:
        """Return the model with the plan's dims; `model` is edited."""
        axes = plan.axes
        for value in model.proto.graph.input:
            if value.name in axes:
                self._name_input(value, axes[value.name], log)
        dropped = drop_value_info(model.proto)
        if dropped:
            log.note(
                self.name,
                "value-info",
                f"removed {dropped} declared shapes of inner values that have the old sizes",
            )
        if plan.frozen_sizes:
            from .repair import repair

            result = repair(model, plan.frozen_sizes, plan.batch, log, self.name)
            outputs = declare_outputs(result.model, plan, result.batch_axes, log, self.name)
            note_symbols(result, outputs, log, self.name)
            model, plan = result.model, replace(plan, keeps_cells=result.keeps_cells, bounds=result.bounds)
        else:
            declare_outputs(model, plan, {}, log, self.name)
        log.record_fact("", "", plan)
        return model

    def _name_input(self, value: onnx.ValueInfoProto, symbols: Mapping[int, str], log: ChangeLog) -> None:
        before = dims_of(value)
        if before is None:
            raise CannotMigrate(
                f"input {value.name!r} declares no shape, so there are no axes to make dynamic",
                code="needs-rank",
                hint=f"give its shape too, for example with --fix-shape {value.name}:1,3,224,224",
            )
        for axis, symbol in symbols.items():
            value.type.tensor_type.shape.dim[axis].dim_param = symbol
        after = dims_of(value)
        if after != before:
            message = f"input {value.name}: {dims_text(before)} → {dims_text(after)}"
            log.note(self.name, "input-dims", message, subject=value.name)


def _smaller_request(error: MigrateError, plan: DimPlan, symbols: Sequence[str]) -> tuple[Advice, ...]:
    """Return the advice to make only these symbols of a plan dynamic, or to cut the model as the error advises."""
    cut = (advice for advice in error.advice if "extract_outputs" in advice.options)
    return (Advice(plan.part_text(symbols), tried=True), *cut)
