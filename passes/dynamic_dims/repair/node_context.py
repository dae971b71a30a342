"""One node where it stands: what is known of its inputs, and how an edit of it is made and noted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from onnx_migrate.errors import Where
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.rewriter import Rewriter

from .domain import Array, Assignments, Dim, Value
from .graph_state import GraphState, LoopState, UnknownLength
from .hypotheses import Hypotheses
from .node_inference import attributes_of

__all__ = ["BatchMerged", "BatchMixed", "LoopStateConflict", "NodeContext", "UnrepairableNode", "text"]


class UnrepairableNode(Exception):
    """A node that no mending makes right at other sizes."""

    def __init__(self, context: NodeContext, reason: str, constant: str = "") -> None:
        super().__init__(reason)
        self.context = context
        self.reason = reason
        self.constant = constant


class BatchMixed(UnrepairableNode):
    """A node at which the items of a batch meet."""


class BatchMerged(UnrepairableNode):
    """A node that gives an output in which no axis is the batch."""


class LoopStateConflict(UnrepairableNode):
    """A state that begins without an axis that moves and has it after a round: `axis` must begin as long as `dim`."""

    def __init__(self, context: NodeContext, state: LoopState, axis: int, dim: Dim) -> None:
        what = f"state {state.index} of {state.node!r}"
        super().__init__(
            context,
            f"{what} begins as it was, and its axis {axis} follows {context.name_of(dim)} after a round",
        )
        self.state, self.axis, self.dim = state, axis, dim


@dataclass
class NodeContext:
    """A node, its body and its inputs' values (None for one that is left out)."""

    node: onnx.NodeProto
    rw: Rewriter
    graph_state: GraphState
    inputs: list[Value | None]
    hypotheses: Hypotheses
    where: Where
    before: bytes | None = None
    reasons: list[str] = field(default_factory=list)
    exactness: Exactness = Exactness.EXACT
    """How near what the node computes at the old sizes stays."""
    label: str = field(init=False)
    """A name that no other node has."""

    def __post_init__(self) -> None:
        self.label = next((name for name in self.node.output if name), self.node.name)

    @property
    def assignments(self) -> Assignments:
        """The worlds the model is looked at in."""
        return self.graph_state.assignments

    @property
    def attributes(self) -> dict[str, Any]:
        """The node's attributes."""
        return attributes_of(self.node)

    def input(self, index: int) -> Value | None:
        """Return an input's value, None if it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def integers(self, index: int) -> Array | None:
        """Return what an input holds if that is one vector or number of integers in all worlds."""
        value = self.input(index)
        array = value.constant() if value is not None else None
        return array if array is not None and array.dtype.kind == "i" and array.ndim < 2 else None

    def entries(self, index: int) -> list[int | Dim] | None:
        """Return the lengths an input holds: numbers, and axes where shape arithmetic made them follow already."""
        value = self.input(index)
        if value is None or value.data is None:
            return None
        rows = value.data
        if any(row.ndim > 1 or row.dtype.kind != "i" or row.shape != rows[0].shape for row in rows):
            return None
        columns = [
            tuple(int(size) for size in column)
            for column in zip(*(row.reshape(-1) for row in rows), strict=True)
        ]
        dims = [Dim(column) for column in columns]
        return [dim if dim.varies else dim.frozen for dim in dims]

    def set_input(self, index: int, name: str, reason: str) -> None:
        """Connect an input anew."""
        self.snapshot()
        self.rw.set_input(index, name)
        while len(self.inputs) < len(self.node.input):
            self.inputs.append(None)
        del self.inputs[len(self.node.input) :]
        if index < len(self.inputs):
            self.inputs[index] = self.graph_state.value(name) if name else None
        self.reasons.append(reason)

    def snapshot(self) -> None:
        """Keep the node as it is before the first edit."""
        if self.before is None:
            self.before = self.node.SerializeToString(deterministic=True)

    def write_shape(
        self, index: int, entries: list[int | Dim], reason: str, prefer: Sequence[str] = ()
    ) -> None:
        """Give an input lengths: numbers, or axes of values that are there, of those preferred if they have them.

        Raises BlockedError.
        """
        try:
            name = self.graph_state.emit_shape(
                self.rw, entries, [*prefer, *(name for name in self.node.input if name)]
            )
        except UnknownLength:
            self.refuse("no value before it has an axis as long as this must become", index)
        self.set_input(index, name, reason)
        self.inputs[index] = lengths_value(entries, self.assignments)

    def refuse(self, reason: str, index: int | None = None) -> None:
        """Refuse for this node, naming the constant of one input."""
        raise UnrepairableNode(self, reason, self.rw.input(index) if index is not None else "")

    def text(self, entries: list[int | Dim]) -> str:
        """Return lengths as people write them."""
        shown = (str(entry) if isinstance(entry, int) else self.name_of(entry) for entry in entries)
        return f"[{', '.join(shown)}]"

    def name_of(self, dim: Dim) -> str:
        """Return what people call an axis: its symbol, or what it was and moves."""
        names = [self.assignments.symbol(factor) or str(factor.frozen) for factor in dim.flat_factors()]
        symbol = self.assignments.symbol(dim) or " × ".join(names)
        return f"{symbol}, which moves" if dim.varies and all(map(str.isdecimal, names)) else symbol


def lengths_value(entries: list[int | Dim], assignments: Assignments) -> Value:
    """Return the value of a vector of lengths."""
    rows = [
        np.array(
            [entry if isinstance(entry, int) else entry.sizes[assignment] for entry in entries], np.int64
        )
        for assignment in range(assignments.count)
    ]
    data = (rows[0],) * assignments.count if all(isinstance(entry, int) for entry in entries) else tuple(rows)
    return Value(onnx.TensorProto.INT64, (assignments.fixed(len(entries)),), data)


def text(array: Array) -> str:
    """Return numbers as people write them."""
    return str(array.tolist())
