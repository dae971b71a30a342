"""The pass that computes in int32 what is int64: nodes by their schemas, and by ranges that prove that nothing overflows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.obligations import PassResult
from onnx_migrate.engine.other_numbers import AS_ASKED, OtherNumbers
from onnx_migrate.engine.pass_infra import ObligedPass, Pass, register_pass
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.typed_graph import Frame, Step, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.messages import count_and_verb, count_of, first_of
from onnx_migrate.model.graphs import node_label
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.inline_functions import inline_functions
from onnx_migrate.standard.retyping import Retyping, retyping
from onnx_migrate.standard.targets import Targets
from onnx_migrate.standard.type_constraints import constraints

from ..input_dims import open_axes
from ..precision.kernels import refusing_target
from ..precision.plan import Plan
from ..precision.write import write
from .hoist import hoist_casts
from .ranges import Ranges, ranges_of

__all__ = ["Int32", "Int32Ports"]

_SHOWN = 10
"""How many nodes a note names."""

_CLAMPED = {"Slice": (1, 2)}
"""Inputs in which a constant beyond int32 means the same as the end of int32: no axis is longer."""

_STAYING = {"Pad": (3,)}
"""Inputs that stay int64 though the schema takes int32: onnx's inference reads the axes of Pad as int64 (1.23)."""


@dataclass(frozen=True)
class Narrowed:
    """The fact of how many nodes compute in int32, and of the constants and Casts that were written for it."""

    nodes: int
    constants: int
    casts: int

    @property
    def text(self) -> str:
        """The counts in a sentence."""
        return (
            f"{count_and_verb(self.nodes, 'node', 'compute')} in int32 what was int64;"
            f" {count_of(self.constants, 'constant')} and {count_of(self.casts, 'Cast')} were written for it"
        )

    def with_more(self, other: Narrowed) -> Narrowed:
        """Return the counts of both."""
        return Narrowed(self.nodes + other.nodes, self.constants + other.constants, self.casts + other.casts)


@register_pass
@dataclass(frozen=True)
class Int32(Pass):
    """Compute in int32 instead of int64, wherever the numbers are proved to fit.

    Ranges follow from constants, sizes, and the arithmetic on them. An index lies within its axis, or the original model
    fails. Some inputs take only int64 by their schema: the pass keeps such a constant, or adds a Cast in front. Inputs and
    outputs of the model keep their types.
    """

    name: ClassVar[str] = "int32"
    title: ClassVar[str] = "replacing int64 by int32"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    interface: ClassVar[bool] = False
    """Whether inputs and outputs become int32 too."""
    ports: bool = False
    """Whether the inputs will be of int32 too, so that they have no other numbers."""
    required: bool = False
    """Whether a value that may overflow is an error instead of a note."""
    targets: Targets | None = None
    """The runtimes that the result is for."""
    fixed_only: bool = False
    """Whether models with open inputs stay unchanged, since the ranges of their sizes are mostly unknown."""

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place. With `required`, raises CannotMigrate, code `int32-overflow`."""
        # Open dims leave the ranges of sizes open.
        if self.fixed_only and open_axes(model.proto.graph):
            return model
        inline_functions(model)
        names = Names(model.proto)
        frames, ranges = self._read(model)
        hoisted = hoist_casts(frames, ranges, names)
        # The moved Casts changed the graph, so types and ranges are read again.
        if hoisted:
            frames, ranges = self._read(model)
        plan = Plan(TensorProto.INT32, frozenset({TensorProto.INT64}), self.targets)
        steps = [step for frame in frames for step in frame.steps if not step.is_a("Constant")]
        for step in steps:
            _decide(step, plan, ranges)
        _keep_edges(steps, plan)
        # The caller wants an error rather than a mixture of types.
        if self.required and plan.kept:
            self._refuse(plan)
        self._report_kept(plan, log)
        staying = self._report_outputs(frames[0], ranges, log) if self.interface else frozenset[str]()
        if hoisted:
            text = f"Casts now stand in front of nodes that move numbers beyond int32: {count_of(hoisted, 'node')}"
            log.note(self.name, "hoisted-casts", text)
        # Nothing is to be written.
        if not plan.changes and not self.interface:
            return model
        written = write(
            frames, plan, names, _Stored(), model.weights, interface=self.interface, staying=staying
        )
        self._report_written(Narrowed(len(plan.changes), written.constants, written.casts), log)
        self._report_assumed(plan, ranges, log)
        return model

    def _read(self, model: Model) -> tuple[list[Frame], Ranges]:
        types = TypeTable(model.proto)
        frames = frames_of(model.proto, types)
        return frames, ranges_of(frames[0], types, model.weights, ports=self.ports)

    def _refuse(self, plan: Plan) -> None:
        step, reason = next(iter(plan.kept.items()))
        others = (
            f"; {count_and_verb(len(plan.kept) - 1, 'more node', 'keep')} it too"
            if len(plan.kept) > 1
            else ""
        )
        raise CannotMigrate(
            f"not all of the model can compute in int32: the node keeps int64, as {reason}{others}",
            code="int32-overflow",
            where=step.where,
            hint=(
                Advice("give --int32 to keep what may overflow", options={"int32": True}),
                Advice("give --int32=io where callers give int32", options={"int32": "io"}),
            ),
        )

    def _report_written(self, written: Narrowed, log: ChangeLog) -> None:
        """Write one note on all runs of the pass: it runs again after the simplifier, and for the inputs and outputs."""
        before = log.fact(Narrowed, "", "")
        if before is not None:
            log.notes[:] = [note for note in log.notes if note.message != before.text]
            written = before.with_more(written)
        log.record_fact("", "", written)
        log.note(self.name, "int32", written.text)

    def _report_kept(self, plan: Plan, log: ChangeLog) -> None:
        for reason, steps in plan.kept_by_reason.items():
            names = first_of([repr(node_label(step.node)) for step in steps], _SHOWN)
            log.note(
                self.name,
                "kept-int64",
                f"{count_and_verb(len(steps), 'node', 'keep')} int64, because {reason}: {names}",
                subject=node_label(steps[0].node),
                severity="warning",
                once=True,
            )

    def _report_outputs(self, graph: Frame, ranges: Ranges, log: ChangeLog) -> frozenset[str]:
        """Return the outputs that may be beyond int32 and keep their type, and name them."""
        values_by_name = {declared.name: graph.find(declared.name) for declared in graph.body.output}
        # A caller expects the declared type.
        beyond = {
            name: value
            for name, value in values_by_name.items()
            if value is not None and value.dtype == TensorProto.INT64 and not ranges.in_int32(value)
        }
        for name, value in beyond.items():
            text = f"output {name!r}, {_limits(value, ranges)}, may be beyond int32 and keeps int64"
            log.note(self.name, "kept-int64", text, subject=name, severity="warning", once=True)
        return frozenset(beyond)

    def _report_assumed(self, plan: Plan, ranges: Ranges, log: ChangeLog) -> None:
        if ranges.assumed:
            log.note(
                self.name,
                "assumed-indices",
                f"we assume that indices lie within their axis, because the original fails otherwise:"
                f" {count_of(len(ranges.assumed), 'value')}, {_names(ranges.assumed)}",
                once=True,
            )
        wrapping = {
            value
            for step, change in plan.changes.items()
            for input_index, (value, changes) in enumerate(zip(step.inputs, change.inputs, strict=True))
            if changes and value is not None and not ranges.fit(value)
            if ranges.reads_low_bits(step, input_index)
        }
        if wrapping:
            log.note(
                self.name,
                "assumed-wrapping",
                f"{count_of(len(wrapping), 'value')} may exceed int32, although the numbers computed from them do not."
                f" We assume that sums and products wrap around, like those of ONNX Runtime: {_names(wrapping)}",
                once=True,
            )
        if self.ports:
            log.note(
                self.name,
                "assumed-int32",
                "we assume that int64 inputs hold only numbers of int32, as you asked",
                once=True,
            )


@register_pass
@dataclass(frozen=True)
class Int32Ports(ObligedPass, Int32):
    """Give inputs and outputs of int64 the type int32, behind `int32`, which has left Casts there."""

    name: ClassVar[str] = "int32_ports"
    title: ClassVar[str] = "replacing int64 by int32 at inputs and outputs"
    interface: ClassVar[bool] = True

    def apply(self, model: Model, log: ChangeLog) -> PassResult:
        """Edit `model` in place. Raises as `Int32.run`."""
        why = f"with inputs and outputs of int32, {AS_ASKED}"
        return PassResult(Int32.run(self, model, log), OtherNumbers(self.name, "int32", why, new_types=True))


def _names(values: Iterable[Value]) -> str:
    return first_of([*map(repr, sorted({value.name for value in values}))], _SHOWN)


def _decide(step: Step, plan: Plan, ranges: Ranges) -> None:
    """Enter the inputs and outputs of a node that become int32, or the reason why none do. Nodes that need int64 are skipped."""
    inputs, outputs = (tuple(map(plan.changes_type, values)) for values in (step.inputs, step.outputs))
    if not any(inputs) and not any(outputs):
        return
    if step.inner:
        if step.is_a("If") and any(outputs):
            _enter(step, Retyping((False,) * len(inputs), outputs), plan, ranges)
        elif step.is_a("Loop", "Scan") and any(outputs):
            plan.kept[step] = "its states and its scan outputs keep their type"
        return
    change = retyping(step.domain, step.node.op_type, step.version, inputs, outputs, TensorProto.INT32)
    if change is None:
        return
    refusing = refusing_target(step, plan)
    # The runtime must support the node in int32.
    if refusing is not None:
        plan.kept[step] = f"{refusing} does not take it in int32"
    elif _lacks_kernel(step):
        plan.kept[step] = "ONNX Runtime does not have the operator in int32"
    else:
        # Some inputs must be int64 by the standard, such as axes and shapes.
        staying = _STAYING.get(step.node.op_type, ()) if not step.domain else ()
        changed_inputs = tuple(
            changes and input_index not in staying for input_index, changes in enumerate(change.inputs)
        )
        _enter(step, Retyping(changed_inputs, change.outputs), plan, ranges)


def _lacks_kernel(step: Step) -> bool:
    """Return whether ONNX Runtime 1.32 has no kernel of a node for int32, by its `get_all_opkernel_def()`."""
    if step.is_a("OneHot"):  # int32 with values of float alone
        return any(value is None or value.dtype != TensorProto.FLOAT for value in step.inputs[2:])
    return step.is_a("Unique")


def _enter(step: Step, change: Retyping, plan: Plan, ranges: Ranges) -> None:
    """Enter a change for the type variables whose values all fit int32."""
    operator_constraints = constraints(step.domain, step.node.op_type, step.version)

    def variable(place: int, *, output: bool) -> str:
        formal = (
            operator_constraints.formal(place, output=output) if operator_constraints is not None else None
        )
        # Outputs of an If are of one variable, and of a type each.
        return formal.variable if formal is not None and formal.alike else f"{output} {place}"

    beyond = [
        (variable(place, output=output), value)
        for output, values, flags in (
            (False, step.inputs, change.inputs),
            (True, step.outputs, change.outputs),
        )
        for place, (value, changes) in enumerate(zip(values, flags, strict=True))
        # A limit beyond int32 may be clamped without an effect.
        if changes and value is not None and not _is_clamped(step, place, value, output=output)
        if not ranges.in_int32(value) and (output or not ranges.reads_low_bits(step, place))
    ]
    if beyond:
        value = beyond[0][1]
        plan.kept[step] = f"{value.name!r}, {_limits(value, ranges)}, may be beyond int32"
    names = {name for name, _ in beyond}
    inputs, outputs = (
        tuple(changes and variable(place, output=output) not in names for place, changes in enumerate(flags))
        for output, flags in ((False, change.inputs), (True, change.outputs))
    )
    if any(inputs) or any(outputs):
        plan.changes[step] = Retyping(inputs, outputs)


def _limits(value: Value, ranges: Ranges) -> str:
    low, high = ranges.of(value) or (0, 0)
    return "of any number" if high >= 2**63 - 1 else f"from {low:,} to {high:,}"


def _is_clamped(step: Step, place: int, value: Value, *, output: bool) -> bool:
    clamped_inputs = _CLAMPED.get(step.node.op_type, ()) if not step.domain and not output else ()
    return place in clamped_inputs and value.tensor is not None


def _keep_edges(steps: Iterable[Step], plan: Plan) -> None:
    """Keep each Cast to int64 whose readers all need int64."""
    for step in steps:
        value = step.outputs[0] if step.outputs else None
        if step.is_a("Cast") and step in plan.changes and value is not None and not value.is_output:
            wanted = {plan.wanted(reader, input_index) for reader, input_index in value.readers}
            # Another Cast behind this one would be useless.
            if wanted == {TensorProto.INT64}:
                del plan.changes[step]


@dataclass(frozen=True)
class _Stored:
    """Converts stored int64 numbers; one beyond int32 is the end of a Slice, and becomes the end of int32."""

    def convert(self, tensor: TensorProto, weights: Weights) -> None:
        """Give a tensor the type int32, in place."""
        limits = np.iinfo(np.int32)
        data = np.clip(weights.array(tensor), limits.min, limits.max).astype("<i4").tobytes()
        tensor.data_type = TensorProto.INT32
        weights.put(tensor, data)
