"""The pass that brings a model to another floating-point type: nodes by their schemas, weights as they are copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from onnx import TensorProto

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import Chain, PassResult
from onnx_migrate.engine.other_numbers import AS_ASKED, OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass, register_pass
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.narrow_floats import is_narrow, names_type
from onnx_migrate.facts.typed_graph import Frame, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.messages import did_you_mean
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.element_types import type_name
from onnx_migrate.standard.retyping import FLOATS
from onnx_migrate.standard.targets import Targets
from onnx_migrate.verdicts.precision_change import PrecisionChange
from onnx_migrate.verify import Settings
from onnx_migrate.verify.precision.closeness import Closeness

from .conversion import NAMES, Conversion, Converter, weight_bytes
from .from_double import compared_with_double, in_float32
from .islands import Found, find_islands
from .needed_opset import with_needed_opset
from .origin import forget_origin, note_origin, origin_of
from .plan import Plan, sources_of
from .planning import is_meant
from .stored import StoredNumbers
from .stored_narrow import SMALL
from .summary import report_change

__all__ = ["KINDS", "Precision"]

KINDS: dict[str, int] = {
    "fp16": TensorProto.FLOAT16,
    "bf16": TensorProto.BFLOAT16,
    "fp32": TensorProto.FLOAT,
    "fp16-weights": TensorProto.FLOAT16,
    "bf16-weights": TensorProto.BFLOAT16,
}
"""The element type of each precision that a user can choose."""


@register_pass
@dataclass(frozen=True)
class Precision(ObligedPass):
    """Compute in float16, bfloat16 or float32, and store the weights so; or, of a kind "-weights", store the weights alone so.

    A node computes in the type if its schema allows it. Nodes keep their type if they do not take the new one,
    or read a constant beyond it, or if the user names them. Casts connect two types. Inputs and
    outputs keep their types, unless `interface`. With `settings` the pass runs the result, every value rounded to its type,
    beside the original. Nodes around a difference keep their type until the results agree.
    """

    name: ClassVar[str] = "precision"
    title: ClassVar[str] = "choosing the precision of each node"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    kind: str = "fp16"
    keep: Collection[str] = ()
    interface: bool = False
    settings: Settings | None = None
    targets: Targets | None = None
    """The runtimes that the result is for."""
    runtime: str = ""
    """The runtime that supports only this type, if this is the reason for the conversion."""
    may_raise: bool = False
    """Whether the opset may become newer if the type needs that."""

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Convert a copy of `model` and return it.

        Raises CannotMigrate if no node takes the type, or if the result differs too much from the original.
        """
        if self._target == TensorProto.FLOAT and not names_type(model.proto, sources_of(self._target)):
            return PassResult(model)
        if self._is_bound(model):
            return replace(self, interface=True).apply(model, log)
        inline_functions(model)
        original = model = with_needed_opset(model, self.kind, log, may_raise=self.may_raise)
        if self._target != TensorProto.FLOAT:
            model = in_float32(original, interface=self.interface)
        types = TypeTable(model.proto)
        frames = frames_of(model.proto, types)
        _refuse_unmatched(self.keep, frames)
        converter = self._converter(model, types)
        first = converter.convert(frozenset())
        if first.model.proto == model.proto:
            self._settle_unchanged(original, first.plan, log)
            return PassResult(original)
        outcome = self._search(model, original, frames, converter, log)
        last = converter.convert(outcome.islands, outcome.exact) if outcome is not None else first
        if self._target != TensorProto.FLOAT and not is_narrow(last.model.proto):
            self._refuse_unchanged(last.plan, outcome is not None and bool(outcome.islands))
        if last.model.proto == model.proto:
            return PassResult(original)
        if self._target == TensorProto.FLOAT:
            narrow = sources_of(self._target) & {*FLOATS}
            note_origin(frames, narrow, last.model.proto)
        else:
            # The names lead from float32 back to this type, and the model has arrived there.
            forget_origin(self._target, last.model.proto)
        report_change(self._change(original, last, outcome), outcome, last, log)
        return PassResult(last.model, self._obligation(outcome))

    def _is_bound(self, model: Model) -> bool:
        """Return whether inputs and outputs become float32 too, since a runtime of `targets` lacks their type or its Cast."""
        if self.targets is None or self.interface or self._target != TensorProto.FLOAT:
            return False
        graph, sources = model.proto.graph, sources_of(self._target)
        kinds = {port.type.tensor_type.elem_type for port in (*graph.input, *graph.output)} & sources
        types_of_rows = [target.row.types for target in self.targets]
        types_of_rows += [row.types for _, row in self.targets.limits("", "Cast")]
        return any(type_name(kind) not in types for kind in kinds for types in types_of_rows if types)

    @property
    def _target(self) -> int:
        return KINDS[self.kind]

    @property
    def _name(self) -> str:
        """The name of the type."""
        return NAMES[self._target]

    @property
    def _weights_alone(self) -> bool:
        return self.kind.endswith("-weights")

    def _converter(self, model: Model, types: TypeTable) -> Converter:
        stored = StoredNumbers(model.weights, self._target)
        return Converter(
            model,
            self._target,
            stored,
            types,
            self.keep,
            self.interface,
            self.targets,
            self._weights_alone,
        )

    def _search(
        self, model: Model, original: Model, frames: Sequence[Frame], converter: Converter, log: ChangeLog
    ) -> Found | None:
        """Return which nodes must keep their type, None without settings. Raises CannotMigrate if no choice is close enough.

        `model`, with its `frames`, is the `original`. For an original in float64 it is the float32 version; then the result is
        compared with both.
        """
        if self.settings is None:
            return None
        graph = frames[0]
        # The user gave inputs for the original model; earlier passes may have removed some of its inputs.
        chain = log.fact(Chain, "", "") or Chain()
        first = chain.links[0].before if chain.links else original
        *_, feeds = chain.feeds_at(self.settings.feeds_of(first.proto))
        settings = replace(self.settings, input_data=feeds)
        outcome = find_islands(
            model,
            graph,
            self._target,
            lambda islands, exact: converter.convert(islands, exact).model,
            settings,
            weights_alone=self._weights_alone,
            origin=origin_of(frames, self._target, model.proto),
        )
        if self._target != TensorProto.FLOAT or not is_narrow(model.proto):
            self._judge(outcome, graph)
        if model is not original:
            result = converter.convert(outcome.islands, outcome.exact).model
            closeness = compared_with_double(original, result, self._target, settings)
            outcome = replace(outcome, closeness=closeness)
            self._judge(outcome, graph)
        return outcome

    def _settle_unchanged(self, model: Model, plan: Plan, log: ChangeLog) -> None:
        """Refuse a model in which nothing can change, unless it has the type already. For weights alone, write a note instead."""
        if self._weights_alone:
            log.note(
                self.name,
                "precision",
                f"no weight changes: the model has none in float32 of more than {SMALL:,} bytes that {self._name} holds",
            )
        elif not is_narrow(model.proto):
            self._refuse_unchanged(plan, False)
            self._refuse_double(model)

    def _change(self, model: Model, last: Conversion, found: Found | None) -> PrecisionChange:
        """Return the changes, for the report."""
        sizes, reasons = (found.sizes, found.reasons) if found is not None else ({}, {})
        outputs = found.closeness.largest if found is not None else ()
        return last.change(
            weight_bytes(model),
            sizes,
            reasons,
            weights_alone=self._weights_alone,
            outputs=outputs,
            tolerance=self.settings.precision_tolerance if self.settings is not None else None,
            generated_inputs=bool(outputs) and self.settings is not None and self.settings.feeds is None,
        )

    def _obligation(self, found: Found | None) -> OtherNumbers:
        kind, closeness = self._name, found.closeness if found is not None else Closeness()
        why = f"which is all that {self.runtime} takes" if self.runtime else AS_ASKED
        return OtherNumbers(
            self.name,
            f"{kind} weights" if self._weights_alone else kind,
            f"those of weights that are rounded to {kind}, {why}"
            if self._weights_alone
            else f"those of {kind}, {why}",
            new_types=self.interface,
            limited=closeness.largest,
            unmeasured=_doubt(closeness),
        )

    def _refuse_unchanged(self, plan: Plan, islands: bool) -> None:
        """Raise CannotMigrate if no node takes the type or keeps its numbers in it. A model of that type is no error."""
        kept_steps = [(step, reason) for step, reason in plan.kept.items() if step not in plan.intended]
        if (plan.changes and not islands) or not kept_steps:
            return
        step, reason = kept_steps[0]
        raise CannotMigrate(
            f"no node of the model can compute in {self._name}; this one stays because {reason}",
            code="precision-lost",
            where=step.where,
        )

    def _refuse_double(self, model: Model) -> None:
        if self.kind != "fp32" and names_type(model.proto, {TensorProto.DOUBLE}):
            raise CannotMigrate(
                f"no node of the model in float64 can compute in {self._name}",
                code="precision-lost",
                hint="--precision fp32 converts it to float32",
            )

    def _judge(self, found: Found, graph: Frame) -> None:
        """Raise CannotMigrate for a result that is too far from the original."""
        closeness = found.closeness
        if closeness.agrees:  # also where nothing could be compared, which the report says
            return
        cause = next((step for step in graph.steps if {*step.node.output} & {*closeness.causes[-1:]}), None)
        kind = self._name
        sizes = found.sizes.get(cause.node.output[0]) if cause is not None else None
        range_ = f"; its numbers lie between {sizes[1]:.3g} and {sizes[0]:.3g}" if sizes else ""
        tried, hint = ", whichever nodes stay in float32", "--keep-fp32 keeps nodes that you name in float32"
        if self.kind == "fp32":
            tried, hint = "", "--keep-fp32 leaves nodes that you name in float64"
        more = "; bf16 has the range of float32" if self.kind == "fp16" else ""
        jumps = closeness.refusal and not closeness.fails
        if jumps and self.settings is not None and self.settings.feeds is None:
            more = "; on inputs of yours (--input-data) numbers may be farther from where it decides"
        raise CannotMigrate(
            f"in {kind}, {closeness.worst}{tried}{range_}",
            code="precision-lost",
            where=cause.where if cause is not None else None,
            hint=hint + more,
        )


def _doubt(closeness: Closeness) -> str:
    """Return why nobody knows how far a result is off; "" if it is within its limits.

    Only a result in float32 may be written beyond them: a narrow original rounds more than its result.
    """
    if closeness.agrees:
        return closeness.reason
    return f"{closeness.worst}; the original rounds more than the result, so a fault would look the same"


def _refuse_unmatched(keep: Iterable[str], frames: Iterable[Frame]) -> None:
    """Raise UsageError for a node or operator to be kept that no node of the model matches."""
    steps = [step for frame in frames for step in frame.steps]
    for wish in keep:
        if not any(is_meant(step, wish) for step in steps):
            near = did_you_mean(
                wish, {name for step in steps for name in (step.node.op_type, step.node.name)}
            )
            raise UsageError(
                f"--keep-fp32 {wish}: no node has this name, nor is of this operator",
                hint=near
                or "onnx-migrate inspect lists operators; a node's name may be a pattern, for example '/head/*'",
            )
