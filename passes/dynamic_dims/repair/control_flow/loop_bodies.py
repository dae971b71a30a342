"""Loop and Scan: what their bodies' inputs are, what their outputs are, and which values are loop-carried."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx

from onnx_migrate.standard.schema import is_onnx

from ..domain import Dim, Value
from ..domain.value import join
from ..graph_state import LoopState
from ..node_context import LoopStateConflict, NodeContext
from ..operand_edits import expand_operand
from ..rules.trip_count import repair_trip_count

__all__ = ["Iteration", "iteration_of"]


@dataclass(frozen=True)
class Iteration:
    """A Loop or Scan node and its body; the states come first among the node's outputs, before stacked values."""

    context: NodeContext
    body: onnx.GraphProto
    first: int
    """The index of the first state among the node's inputs."""
    states: int
    """The number of states; a Scan's scanned inputs follow them."""
    trip_count: Dim | None = None
    """The number of iterations, None if it is not known."""

    def body_inputs(self, expanded_states: Collection[tuple[LoopState, int, Dim]]) -> dict[str, Value]:
        """Return the values of the body's inputs, after expanding the initial values of `expanded_states`."""
        context = self.context
        for state, axis, dim in expanded_states:
            if state.node == context.label:
                expand_operand(context, self.first + state.index, axis, dim)
        inputs: dict[str, Value] = {}
        for index, declared in enumerate(self.body.input[self._offset :]):
            outer = context.input(self.first + index)
            if outer is None:
                continue
            dims = outer.dims
            if index >= self.states and dims is not None:
                axis = _axis(context, "scan_input_axes", index - self.states, len(dims))
                dims = (*dims[:axis], *dims[axis + 1 :])
            inputs[declared.name] = Value(outer.dtype, dims, types=outer.types)
        return inputs

    def loop_states(self) -> dict[str, LoopState]:
        """Return which state each loop-carried input of the body is."""
        names = [value.name for value in self.body.input[self._offset : self._offset + self.states]]
        return {name: LoopState(self.context.label, index) for index, name in enumerate(names)}

    def outputs(self, results: Sequence[Value]) -> list[Value]:
        """Return the values of the node's outputs from those of its body's. Raises LoopStateConflict.

        A state is the join of its initial value and its value after an iteration; other outputs are stacked.
        """
        context = self.context
        results = results[1:] if context.node.op_type == "Loop" else results  # without the condition
        for index, after in enumerate(results[: self.states]):
            before = context.input(self.first + index)
            axes = zip(before.dims or (), after.dims or (), strict=False) if before is not None else ()
            for axis, (old, new) in enumerate(axes):
                if old and new and new.varies and not old.varies and old.frozen == new.frozen:
                    raise LoopStateConflict(context, LoopState(context.label, index), axis, new)
        initial = [context.input(self.first + index) or Value() for index in range(self.states)]
        final = [join(a, b) for a, b in zip(initial, results, strict=False)]
        return [*final, *(self._stacked(value, index) for index, value in enumerate(results[self.states :]))]

    @property
    def _offset(self) -> int:
        """The index of the first state among the body's inputs."""
        return len(self.body.input) - (len(self.context.node.input) - self.first)

    def _stacked(self, value: Value, index: int) -> Value:
        if value.dims is None:
            return Value(value.dtype)
        axis = _axis(self.context, "scan_output_axes", index, len(value.dims) + 1)
        return Value(value.dtype, (*value.dims[:axis], self.trip_count, *value.dims[axis:]))


def iteration_of(context: NodeContext, body: onnx.GraphProto) -> Iteration | None:
    """Return how a Loop or Scan iterates over its body, after repairing a Loop's trip count.

    None for other operators, and for Scan up to opset 8, whose inputs have a batch axis of their own.
    """
    node = context.node
    if not is_onnx(node.domain):
        return None
    if node.op_type == "Loop":
        return Iteration(context, body, 2, len(node.input) - 2, repair_trip_count(context, body))
    if node.op_type == "Scan" and context.rw.version >= 9:
        states = len(node.input) - context.attributes["num_scan_inputs"]
        dims = context.dims(states)
        trip_count = dims[_axis(context, "scan_input_axes", 0, len(dims))] if dims else None
        return Iteration(context, body, 0, states, trip_count)
    return None


def _axis(context: NodeContext, name: str, index: int, rank: int) -> int:
    axes = context.attributes.get(name)
    return int(axes[index]) % rank if axes else 0
