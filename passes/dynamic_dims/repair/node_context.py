"""One node under interpretation: the knowledge about its inputs, and the edits that a repair rule makes and explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.errors import Where
from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.rewrite.rewriter import Rewriter

from .domain import SAMPLES, Array, Assignments, Dim, SampledValue, fixed
from .graph_state import GraphState, LoopState, UnknownLength
from .hypotheses import Hypotheses

__all__ = [
    "BatchMerged",
    "BatchMixed",
    "LoopStateConflict",
    "NodeContext",
    "UnrepairableNode",
    "lengths_value",
]


class UnrepairableNode(Exception):
    """Under the current hypotheses no repair makes a node valid at other sizes: a conflict, which backtracking resolves.

    `constant` names the input that is suspected to hold the frozen size, "" if none is.
    """

    def __init__(self, context: NodeContext, reason: str, constant: str = "") -> None:
        super().__init__(reason)
        self.context = context
        self.reason = reason
        self.constant = constant


class BatchMixed(UnrepairableNode):
    """A node computes across the items of a batch, for example a Softmax over the batch axis."""


class BatchMerged(UnrepairableNode):
    """An output of the graph has the batch merged with another axis, so no axis of it is the batch."""


class LoopStateConflict(UnrepairableNode):
    """A loop-carried value has a fixed axis before the first iteration and a varying one after it.

    It is resolved by the `expansion`: a state, the axis of its initial value, and the dim that axis must have.
    """

    def __init__(self, context: NodeContext, state: LoopState, axis: int, dim: Dim) -> None:
        super().__init__(
            context,
            f"axis {axis} of loop-carried value {state.index} of {state.node!r} has the fixed length {dim.frozen} before"
            f" the first iteration, and the length {context.name_of(dim)} after it",
        )
        self.expansion = state, axis, dim


@dataclass
class NodeContext:
    """A node, the graph it is in, and the values of its inputs (None for an absent input)."""

    node: onnx.NodeProto
    rw: Rewriter
    graph_state: GraphState
    inputs: list[SampledValue | None]
    hypotheses: Hypotheses
    where: Where
    label: str = field(init=False)
    """The name of the node's first output, which no other node of the graph has."""

    def __post_init__(self) -> None:
        self.label = next((name for name in self.node.output if name), self.node.name)

    @property
    def assignments(self) -> Assignments:
        """Return the sample assignments of the interpretation."""
        return self.graph_state.assignments

    @property
    def attributes(self) -> dict[str, Any]:
        """The node's attributes."""
        return attributes_of(self.node)

    @property
    def removed_batch(self) -> bool:
        """Whether the node removed a batch axis, and was made a Reshape that merges it with another instead."""
        # A rule renames the node, and `where` has the operator from before.
        return self.where.operator in ("Squeeze", "Gather") and self.node.op_type == "Reshape"

    def input(self, index: int) -> SampledValue | None:
        """Return the value of an input, None if it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def dims(self, index: int) -> tuple[Dim | None, ...] | None:
        """Return the dims of an input, None if it is absent or of unknown rank."""
        value = self.input(index)
        return value.dims if value is not None else None

    def known(self, index: int) -> tuple[Dim, ...] | None:
        """Return the dims of an input, None if it is absent or not all of them are known."""
        value = self.input(index)
        return value.known if value is not None else None

    def constant(self, index: int) -> Array | None:
        """Return the elements of an input that is a constant, else None."""
        value = self.input(index)
        return value.constant() if value is not None else None

    def integers(self, index: int) -> Array | None:
        """Return the elements of an input that is a constant scalar or vector of integers, else None."""
        array = self.constant(index)
        return array if array is not None and array.dtype.kind == "i" and array.ndim < 2 else None

    def entries(self, index: int) -> list[int | Dim] | None:
        """Return the elements of an input that is a vector of lengths: numbers, and dims for those that vary."""
        value = self.input(index)
        if value is None or value.data is None:
            return None
        rows = value.data
        if any(row.ndim > 1 or row.dtype.kind != "i" or row.shape != rows[0].shape for row in rows):
            return None
        columns = zip(*(row.reshape(-1).tolist() for row in rows), strict=True)
        return [dim if dim.varies else dim.frozen for dim in map(Dim, columns)]

    def set_input(self, index: int, name: str, reason: str, value: SampledValue | None = None) -> None:
        """Connect an input to another value ("" removes it). `value` is the knowledge about it; reports show the reason."""
        self.rw.set_input(index, name)
        self.inputs += [None] * (len(self.node.input) - len(self.inputs))
        del self.inputs[len(self.node.input) :]
        if index < len(self.inputs):
            self.inputs[index] = value or (self.graph_state.value(name) if name else None)
        self.rw.note(reason)

    def replace_input(self, index: int, name: str, value: SampledValue, reason: str) -> None:
        """Connect an input to a new value. Later nodes may read lengths from its axes."""
        self.set_input(index, name, reason, value)
        self.graph_state.record(name, value)

    def write_shape(
        self, index: int, entries: Sequence[int | Dim], reason: str, prefer: Sequence[str] = ()
    ) -> None:
        """Connect an input to a vector of lengths, which are read from the values in `prefer` where these have them.

        Raises UnrepairableNode.
        """
        name = self.emit_shape(entries, index, [*prefer, *filter(None, self.node.input)])
        self.set_input(index, name, reason, lengths_value(entries))

    def emit_shape(self, entries: Sequence[int | Dim], index: int, prefer: Sequence[str] = ()) -> str:
        """Write a vector of lengths for input `index` and return its name. Raises UnrepairableNode."""
        try:
            return self.graph_state.emit_shape(self.rw, entries, prefer)
        except UnknownLength:
            self.refuse(
                "the length it needs at other sizes cannot be computed from the shape of any earlier value",
                index,
            )

    def emit_length(self, dim: Dim, dtype: np.dtype[Any], index: int, prefer: Sequence[str] = ()) -> str:
        """Write a length as a scalar of `dtype` for input `index` and return its name. Raises UnrepairableNode."""
        vector = self.emit_shape([dim], index, prefer)
        scalar = self.rw.before(
            "Gather", [vector, self.rw.constant(np.array(0, np.int64), "first")], hint="length"
        )
        if dtype == np.int64:
            return scalar
        return self.rw.before("Cast", [scalar], hint="length", to=int(helper.np_dtype_to_tensor_dtype(dtype)))

    def refuse(self, reason: str, index: int | None = None) -> NoReturn:
        """Raise UnrepairableNode for this node; `index` is the input that holds the frozen size."""
        raise UnrepairableNode(self, reason, self.rw.input(index) if index is not None else "")

    def text(self, entries: list[int | Dim]) -> str:
        """Return lengths as the report shows them: [N, 3, 224]."""
        shown = (str(entry) if isinstance(entry, int) else self.name_of(entry) for entry in entries)
        return f"[{', '.join(shown)}]"

    def name_of(self, dim: Dim) -> str:
        """Return the length of an axis as the report shows it: N, 12, N × 2, ≈H/8."""
        return self.assignments.text(dim)

    def symbols_in(self, dim: Dim) -> str:
        """Return the symbols that an axis changes with, as a phrase: "N and H"."""
        return " and ".join(self.assignments.symbols_in(dim)) or "other lengths"

    def describe(self, name: str) -> str:
        """Return a value as messages name it: constant 'weight', or 'x'."""
        return f"constant {name!r}" if self.graph_state.is_constant(name) else repr(name)


def lengths_value(entries: Sequence[int | Dim]) -> SampledValue:
    """Return the value of a vector of lengths."""
    dims = [fixed(entry) if isinstance(entry, int) else entry for entry in entries]
    rows = [np.array([dim.sizes[assignment] for dim in dims], np.int64) for assignment in range(SAMPLES)]
    varies = any(isinstance(entry, Dim) for entry in entries)
    return SampledValue(
        onnx.TensorProto.INT64, (fixed(len(entries)),), tuple(rows) if varies else (rows[0],) * SAMPLES
    )
