"""The plan for each node of a model that is to compute in another type: it changes, or it stays for a reason."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Step, Value
from onnx_migrate.standard.retyping import FLOATS, Retyping, takes_any
from onnx_migrate.standard.targets import Targets

__all__ = ["INTEGERS", "Plan", "moves", "sources_of", "stays"]

_MOVERS = frozenset(
    {
        "Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad",
        "Reshape", "ReverseSequence", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze", "Where",
        "Abs", "ArgMax", "ArgMin", "Dropout", "MaxPool", "GlobalMaxPool", "Max", "Min", "Neg", "ReduceMax", "ReduceMin",
        "Relu", "Sign",
    }
)  # fmt: skip
"""Operators that give the same numbers in either type: they take the type of their neighbours."""

INTEGERS = frozenset(
    {
        TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16,
        TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL,
    }
)  # fmt: skip


def sources_of(target: int) -> frozenset[int]:
    """Return the floating-point types that change if a model is to compute in `target`; float64 changes only to float32."""
    return frozenset((*FLOATS, *([TensorProto.DOUBLE] if target == TensorProto.FLOAT else []))) - {target}


@dataclass
class Plan:
    """For each node of the model with floating-point values: the change, or the reason why it stays.

    `target` is the new type. `changes` has the nodes that compute in it. `kept` has all other nodes with values of another
    floating-point type, each with its reason for the report.
    """

    target: int
    sources: frozenset[int]
    runtimes: Targets | None = None
    changes: dict[Step, Retyping] = field(default_factory=dict)
    kept: dict[Step, str] = field(default_factory=dict)
    vanishing: dict[Step, float] = field(default_factory=dict)
    """The nodes that read a constant which becomes 0, and that."""
    intended: set[Step] = field(default_factory=set)
    """The nodes that the model computes in another type between Casts, by its author's choice."""
    exact: set[Step] = field(default_factory=set)
    """The nodes of `kept` that need their constants unchanged; constants of other nodes are stored narrow if they fit."""
    stored_narrow: set[Value] = field(default_factory=set)
    """The float32 constants that are stored in `target`, with one Cast for all nodes that read them in float32."""
    wide_constants: dict[Value, str] = field(default_factory=dict)
    """The constants that nodes read in float32 and that are stored so, with the reason."""

    @property
    def narrows(self) -> bool:
        """Whether the type is narrower than float32, for which runtimes have no kernels of some operators."""
        return self.target != TensorProto.FLOAT

    def changes_type(self, value: Value | None) -> bool:
        """Return whether a value is a tensor of a type that is to change."""
        return value is not None and value.dtype in self.sources

    def wanted(self, step: Step, index: int) -> int | None:
        """Return the type in which a node reads an input; None if any type will do, or there is no choice."""
        value = step.inputs[index]
        if value is None or not self.changes_type(value) or takes_any(step.domain, step.node.op_type, index):
            return None
        change = self.changes.get(step)
        return self.target if change is not None and change.inputs[index] else value.dtype

    def keep(self, step: Step, reason: str) -> None:
        """Let a node that was to change keep its type."""
        if self.changes.pop(step, None) is not None:
            self.kept[step] = reason

    @property
    def kept_by_reason(self) -> dict[str, list[Step]]:
        """Return the nodes of `kept`, grouped by their reasons."""
        steps_by_reason: dict[str, list[Step]] = {}
        for step, reason in self.kept.items():
            steps_by_reason.setdefault(reason, []).append(step)
        return steps_by_reason

    def computed(self, step: Step) -> list[Value]:
        """Return the inputs of a node that are computed and of a type that changes."""
        return [value for value in step.read if value.tensor is None and self.changes_type(value)]


def moves(step: Step) -> bool:
    """Return whether a node gives the same numbers in either type."""
    return not step.domain and step.node.op_type in _MOVERS


def stays(value: Value, plan: Plan) -> bool:
    """Return whether a computed value keeps its type."""
    maker = value.maker
    if maker is None:
        return False
    change = plan.changes.get(maker)
    return change is None or not change.outputs[maker.outputs.index(value)]
