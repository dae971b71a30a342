"""The pass that brings a model to another floating-point type: nodes by their schemas, weights as they are copied."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from onnx import TensorProto

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import AS_ASKED, Chain, OtherNumbers, PassResult
from onnx_migrate.engine.pass_infra import ObligedPass, make_pass, register_pass
from onnx_migrate.errors import CannotMigrate, UsageError
from onnx_migrate.facts.typed_graph import Frame, Step, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.messages import count_and_verb, count_of, did_you_mean, first_of
from onnx_migrate.model.graphs import all_nodes, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.opsets import onnx_opset, set_onnx_opset
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.standard.targets import Targets
from onnx_migrate.verdicts import NodeRange, NumberRanges
from onnx_migrate.verify import Settings
from onnx_migrate.verify.evaluators.strict import is_narrow, names_type
from onnx_migrate.verify.precision.closeness import Closeness

from .island_steps import Islands
from .islands import Found, find_islands
from .numbers import largest, smallest
from .plan import Plan, sources_of
from .planning import is_meant, plan_of
from .stored import StoredNumbers
from .write import Written, write

__all__ = ["KINDS", "Precision"]

KINDS = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "fp32": TensorProto.FLOAT}
"""The element types that can be asked for."""

_NAMES = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}

_QUANTISING = ("QuantizeLinear", "DequantizeLinear")

_BFLOAT_BEGINS = 13
"""The first opset with bfloat16."""

_BESIDE = 17
"""The opset of ai.onnx, whose Casts are written, in a model that imports other domains alone."""

_SCALES_OPSET, _BFLOAT_OPSET = 19, 22
"""The opsets from which on QuantizeLinear and DequantizeLinear take scales of float16, and Conv and the pools bfloat16."""

_SHOWN = 10
"""How many nodes a note names."""


@register_pass
@dataclass(frozen=True)
class Precision(ObligedPass):
    """Compute in float16, bfloat16 or float32, and store the weights so.

    Each node that takes the type by its schema computes in it. Nodes that do not, that read a constant which the type cannot
    hold, or that the user names, keep their type; Casts stand where two types meet. Inputs and outputs keep their types,
    unless `interface`. With `settings` the result runs, every value rounded to its type, beside the original: around the node at
    which it leaves the original, nodes keep their type until it does not.
    """

    name: ClassVar[str] = "precision"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    kind: str = "fp16"
    keep: Collection[str] = ()
    interface: bool = False
    settings: Settings | None = None
    targets: Targets | None = None
    """The runtimes that the result is for."""
    runtime: str = ""
    """The runtime that takes this type alone, if that is why."""
    may_raise: bool = False
    """Whether the opset may become newer, as the type needs."""

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Convert a copy of `model` and return it.

        Raises CannotMigrate where no node takes the type, and where the result is too far from the original.
        """
        target = KINDS[self.kind]
        if target == TensorProto.FLOAT and not names_type(model.proto, sources_of(target)):
            return PassResult(model)
        inline_functions(model)
        model = self._raised(model, log)
        stored = StoredNumbers(model.weights, target)
        types = TypeTable(model.proto)
        frames = frames_of(model.proto, types)
        graph = frames[0]
        _refuse_unmatched(self.keep, frames)
        done: dict[Islands, _Conversion] = {}

        def converted(islands: Islands) -> _Conversion:
            if islands not in done:
                done.clear()
                done[islands] = self._converted(model, stored, types, islands)
            return done[islands]

        first = converted(frozenset())
        if first.model.proto == model.proto:
            if not is_narrow(model.proto):
                self._refuse_unchanged(first.plan, frozenset())
                self._refuse_double(model)
            return PassResult(model)
        found = None
        if self.settings is not None:
            # The user gave inputs for the original, of which passes may have taken a part.
            *_, feeds = (log.fact(Chain, "", "") or Chain()).feeds_at(self.settings.feeds)
            settings = replace(self.settings, input_data=feeds)
            found = find_islands(model, graph, target, lambda islands: converted(islands).model, settings)
            if target != TensorProto.FLOAT or not is_narrow(model.proto):
                self._judge(found, graph)
        islands: Islands = found.islands if found is not None else frozenset()
        last = converted(islands)
        if target != TensorProto.FLOAT and not is_narrow(last.model.proto):
            self._refuse_unchanged(last.plan, islands)
        if last.model.proto == model.proto:
            return PassResult(model)
        self._report(last, found, log)
        return PassResult(last.model, self._obligation(found))

    def _obligation(self, found: Found | None) -> OtherNumbers:
        kind, closeness = _NAMES[self.kind], found.closeness if found is not None else Closeness()
        why = f"which is all that {self.runtime} takes" if self.runtime else AS_ASKED
        return OtherNumbers(
            self.name,
            kind,
            f"those of {kind}, {why}",
            new_types=self.interface,
            limited=closeness.largest,
            unmeasured=_doubt(closeness),
        )

    def _raised(self, model: Model, log: ChangeLog) -> Model:
        """Bring the model to the opset from which on its operators take the type, if that is newer and allowed."""
        opset = onnx_opset(model.proto.opset_import, ir_version=model.proto.ir_version) or 0
        needed = _BFLOAT_OPSET if self.kind == "bf16" else 0
        nodes = all_nodes(model.proto)
        if self.kind == "fp16" and any(
            node.op_type in _QUANTISING and is_onnx(node.domain) for node in nodes
        ):
            needed = _SCALES_OPSET
        if 0 < opset < _BFLOAT_BEGINS and self.kind == "bf16" and not self.may_raise:
            raise CannotMigrate(
                f"bfloat16 begins with opset {_BFLOAT_BEGINS}, and the model is to have opset {opset}",
                code="precision-lost",
                hint=f"give --opset {_BFLOAT_BEGINS} or more, or --precision fp16",
            )
        if not opset:
            set_onnx_opset(model.proto, max(needed, _BESIDE))
        if opset >= needed or not opset or not self.may_raise:
            return model
        log.note(
            self.name,
            "opset-raised",
            f"the opset is raised from {opset} to {needed}, from which on"
            + (" convolutions and pools take bfloat16" if self.kind == "bf16" else " scales may be float16")
            + f"; --opset {opset} keeps it",
        )
        return make_pass("migrate_opset", opset=needed, newer="keep").run(model, log)

    def _converted(
        self, model: Model, stored: StoredNumbers, types: TypeTable, islands: Islands
    ) -> _Conversion:
        result = model.copy()
        frames = frames_of(result.proto, types)
        plan = plan_of(
            frames, KINDS[self.kind], stored, keep=self.keep, islands=islands, runtimes=self.targets
        )
        written = write(frames, plan, Names(result.proto), stored, result.weights, interface=self.interface)
        result.keepalive = (model.keepalive, stored)
        return _Conversion(result, plan, written)

    def _refuse_unchanged(self, plan: Plan, islands: Islands) -> None:
        """Raise CannotMigrate for a model of which nothing takes the type, or keeps its numbers, unless it has it already."""
        kept = [(step, reason) for step, reason in plan.kept.items() if step not in plan.intended]
        if (plan.changes and not islands) or not kept:
            return
        step, reason = kept[0]
        raise CannotMigrate(
            f"nothing of the model can compute in {_NAMES[self.kind]}: {reason}",
            code="precision-lost",
            where=step.where,
        )

    def _refuse_double(self, model: Model) -> None:
        if self.kind != "fp32" and names_type(model.proto, {TensorProto.DOUBLE}):
            raise CannotMigrate(
                f"the model computes in float64, which is not brought to {_NAMES[self.kind]} at once",
                code="precision-lost",
                hint=f"bring it to float32 with --precision fp32, and the result to {_NAMES[self.kind]}",
            )

    def _judge(self, found: Found, graph: Frame) -> None:
        """Raise CannotMigrate for a result that is too far from the original."""
        closeness = found.closeness
        if closeness.agrees:  # also where nothing could be compared, which the report says
            return
        cause = next((step for step in graph.steps if {*step.node.output} & {*closeness.causes[-1:]}), None)
        kind = _NAMES[self.kind]
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

    def _report(self, conversion: _Conversion, found: Found | None, log: ChangeLog) -> None:
        """Say what was done, what was left, and how close the result is."""
        plan, written, kind = conversion.plan, conversion.written, _NAMES[self.kind]
        log.note(
            self.name,
            "precision",
            f"{count_and_verb(len(plan.changes), 'node', 'compute')} in {kind}, {count_of(written.constants, 'constant')} and"
            f" {count_of(written.casts, 'Cast')} were written for it",
        )
        if found is not None:
            self._record_ranges(plan, found, log)
        for reason, steps in plan.kept_by_reason.items():
            shown = [_shown(step, found.sizes if found is not None else {}) for step in steps]
            log.note(
                self.name,
                "kept-precision",
                f"{count_of(len(steps), 'node')} {'keeps its' if len(steps) == 1 else 'keep their'} type: {reason}:"
                f" {first_of(shown, _SHOWN)}",
                subject=node_label(steps[0].node),
            )
        if found is None:
            return
        closeness = found.closeness
        if closeness.reason:
            log.note(
                self.name,
                "precision-unverified",
                f"the numbers in {kind} were not compared with the original's: {closeness.reason}",
                severity="warning",
            )
        if closeness.domain:
            log.note(
                self.name,
                "precision-inputs",
                f"the comparison used floats that are {closeness.domain}, as the model computes NaN or infinity from others",
            )
        for output in closeness.largest:
            severity = (
                "info" if output.agrees else "warning"
            )  # of a model whose original rounds more than the result
            log.note(self.name, "precision-error", str(output), subject=output.name, severity=severity)

    def _record_ranges(self, plan: Plan, found: Found, log: ChangeLog) -> None:
        """Record how large the numbers of nodes are."""
        steps = [(step, step in plan.kept) for step in (*plan.changes, *plan.kept) if not step.frame.key]
        rows = [
            NodeRange(node_label(step.node), step.node.op_type, *found.sizes[step.node.output[0]], kept)
            for step, kept in sorted(steps, key=lambda one: one[0].index)
            if step.node.output and step.node.output[0] in found.sizes
        ]
        if rows:
            kind = KINDS[self.kind]
            log.record_fact(
                "", "", NumberRanges(_NAMES[self.kind], largest(kind), smallest(kind), tuple(rows))
            )


def _doubt(closeness: Closeness) -> str:
    """Return why nobody knows how far a result is off; "" if it is within its limits.

    Only a result in float32 may be written beyond them: a narrow original rounds more than its result.
    """
    if closeness.agrees:
        return closeness.reason
    return f"{closeness.worst}; the original rounds more than the result, so that a fault cannot be told from that"


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
                or "onnx-migrate inspect lists operators; what a node is called may be a pattern, as '/head/*'",
            )


@dataclass(frozen=True)
class _Conversion:
    model: Model
    plan: Plan
    written: Written


def _shown(step: Step, sizes: Mapping[str, tuple[float, float]]) -> str:
    """Return a node's label, with the range of what it gives out where that is known."""
    size = sizes.get(step.node.output[0]) if step.node.output else None
    label = repr(node_label(step.node))
    return f"{label} (numbers from {size[1]:.3g} to {size[0]:.3g})" if size else label
