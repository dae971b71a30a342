"""A model in the new type with given nodes kept: its plan, the nodes and weights that were written, and texts for the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import BodyKey, node_label, weight_tensors
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.model.payloads import byte_size
from onnx_migrate.standard.targets import Targets
from onnx_migrate.verdicts import RoundedOutput
from onnx_migrate.verdicts.precision_change import KeptNode, PrecisionChange, WideWeight

from .island_steps import Islands
from .plan import Plan
from .planning import plan_of, plan_of_weights
from .stored import StoredNumbers
from .write import Written, write

__all__ = ["NAMES", "Conversion", "Converter", "weight_bytes"]

NAMES: dict[int, str] = {
    TensorProto.FLOAT16: "float16", TensorProto.BFLOAT16: "bfloat16", TensorProto.FLOAT: "float32",
}  # fmt: skip
"""The names of the types in the report."""

Sizes = Mapping[str, tuple[float, float]]
"""Of first outputs in the main graph the largest and the smallest magnitude but 0."""

Reasons = Mapping[tuple[BodyKey, str], str]
"""Why the search kept nodes, by their bodies and first outputs."""


@dataclass(frozen=True)
class Conversion:
    """A model in the new type, with its plan and the bodies that it was written from."""

    model: Model
    plan: Plan
    written: Written
    frames: list[Frame]

    def change(
        self,
        before: int,
        sizes: Sizes,
        reasons: Reasons,
        *,
        weights_alone: bool,
        outputs: tuple[RoundedOutput, ...],
        tolerance: float | None,
        generated_inputs: bool,
    ) -> PrecisionChange:
        """Return the report on the conversion of a model with so many bytes of weights."""
        target = self.plan.target
        return PrecisionChange(
            NAMES[target],
            "another type" if target == TensorProto.FLOAT else "float32",
            weights_alone,
            before,
            weight_bytes(self.model),
            len(self.plan.changes),
            self.written.casts,
            self.stored_narrow(),
            self.kept_nodes(sizes, reasons),
            self.wide_weights(),
            outputs,
            tolerance,
            generated_inputs,
        )

    def kept_nodes(self, sizes: Sizes, reasons: Reasons) -> tuple[KeptNode, ...]:
        """Return the nodes that do not compute in the new type, in their order. `reasons` replace those of the plan."""
        own: dict[Step, int] = {}
        for value, step in self._wide():
            if step is not None:
                own[step] = own.get(step, 0) + _bytes(value)
        kept_steps = [step for frame in self.frames for step in frame.steps if step in self.plan.kept]
        return tuple(
            KeptNode(
                node_label(step.node),
                step.node.op_type,
                reasons.get(_place(step)) or self.plan.kept[step],
                own.get(step, 0),
                *_range(step, sizes),
            )
            for step in kept_steps
        )

    def wide_weights(self) -> tuple[WideWeight, ...]:
        """Return the weights that keep their type."""
        return tuple(
            WideWeight(
                value.name,
                step.node.op_type if step else "outputs",
                _bytes(value),
                self._why_wide(value, step),
            )
            for value, step in self._wide()
        )

    def stored_narrow(self) -> int:
        """Return the bytes of the weights that are stored in the new type and read in the old one."""
        return sum(map(_bytes, self.plan.stored_narrow))

    def _wide(self) -> Iterator[tuple[Value, Step | None]]:
        """Yield the weights that keep their type, each with the first node that reads it, None for one that is an output."""
        for frame in self.frames:
            for value in frame.values.values():
                tensor, sources = value.tensor, self.plan.sources
                read = value.is_output or any(
                    self.plan.wanted(*reader) is not None for reader in value.readers
                )
                if tensor is not None and tensor.data_type in sources and read:
                    yield value, value.readers[0][0] if value.readers else None

    def _why_wide(self, value: Value, step: Step | None) -> str:
        reason = self.plan.kept.get(step) if step else ""
        return self.plan.wide_constants.get(value) or reason or "nodes read it in both types"


@dataclass
class Converter:
    """Converts a model, each time with other nodes kept."""

    model: Model
    target: int
    stored: StoredNumbers
    types: TypeTable
    keep: Collection[str] = ()
    interface: bool = False
    targets: Targets | None = None
    weights_alone: bool = False
    _last: dict[tuple[Islands, Islands], Conversion] = field(default_factory=dict)

    def convert(self, islands: Islands, exact: Islands = frozenset()) -> Conversion:
        """Return the model with these nodes kept, and with the weights of those that are `exact` unchanged."""
        if (islands, exact) not in self._last:
            # Each conversion holds a model, so only the last one stays in memory.
            self._last.clear()
            self._last[islands, exact] = self._converted(islands, exact)
        return self._last[islands, exact]

    def _converted(self, islands: Islands, exact: Islands) -> Conversion:
        result = self.model.copy()
        frames = frames_of(result.proto, self.types)
        if self.weights_alone:
            plan = plan_of_weights(frames, self.target, self.stored, keep=self.keep, exact=islands | exact)
        else:
            plan = plan_of(
                frames, self.target, self.stored, keep=self.keep, islands=islands, exact=exact, runtimes=self.targets
            )  # fmt: skip
        names = Names(result.proto)
        written = write(frames, plan, names, self.stored, result.weights, interface=self.interface)
        # Weights of the result may lie in temporary files of both.
        result.keepalive = (self.model.keepalive, self.stored)
        return Conversion(result, plan, written, frames)


def _place(step: Step) -> tuple[BodyKey, str]:
    """Return a node as islands name it: by its body and its first output."""
    return step.frame.key, step.node.output[0] if step.node.output else ""


def weight_bytes(model: Model) -> int:
    """Return the bytes of all weights of a model."""
    return sum(byte_size(tensor.dims, tensor.data_type) or 0 for tensor in weight_tensors(model.proto))


def _bytes(value: Value) -> int:
    tensor = value.tensor
    return 0 if tensor is None else byte_size(tensor.dims, tensor.data_type) or 0


def _range(step: Step, sizes: Sizes) -> tuple[float, float] | tuple[()]:
    """Return the range of the output of a node in the main graph; () if the range is unknown."""
    is_recorded = bool(step.node.output) and not step.frame.key and step.node.output[0] in sizes
    return sizes[step.node.output[0]] if is_recorded else ()
