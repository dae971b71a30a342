"""What goes into the bodies of Loop and Scan and comes out of them, and the states they carry round."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx

from onnx_migrate.spec.schema import is_onnx

from .domain import Dim, Value
from .graph_state import LoopState
from .node_context import LoopStateConflict, NodeContext
from .rules.broadcast import repeat
from .rules.trip_count import repair_trip_count

__all__ = ["Iteration", "iteration_of", "join"]


@dataclass(frozen=True)
class Iteration:
    """A Loop or Scan: where its states and its scanned inputs begin, among its inputs and among its body's."""

    context: NodeContext
    body: onnx.GraphProto
    first: int
    states: int
    """How many states there are; they come first among the node's outputs."""
    steps: Dim | None = None
    """How many rounds there are."""

    def body_inputs(self, expanded_states: Collection[tuple[LoopState, int, Dim]]) -> dict[str, Value]:
        """Repeat states that must begin with the batch, and return what is known of the body's inputs."""
        context = self.context
        for state, axis, dim in expanded_states:
            if state.node == context.label:
                repeat(context, self.first + state.index, axis, dim)
        offset = len(self.body.input) - (len(context.node.input) - self.first)
        inputs: dict[str, Value] = {}
        for index, value in enumerate(self.body.input[offset:]):
            outer = context.input(self.first + index)
            if outer is None:
                continue
            dims = outer.dims
            if index >= self.states and dims is not None:
                axis = _axis(context, "scan_input_axes", index - self.states, len(dims))
                dims = (*dims[:axis], *dims[axis + 1 :])
            inputs[value.name] = Value(outer.dtype, dims, types=outer.types)
        return inputs

    def loop_states(self) -> dict[str, LoopState]:
        """Return the body's inputs that are states."""
        offset = len(self.body.input) - (len(self.context.node.input) - self.first)
        names = [value.name for value in self.body.input[offset : offset + self.states]]
        return {name: LoopState(self.context.label, index) for index, name in enumerate(names)}

    def outputs(self, results: Sequence[Value]) -> list[Value]:
        """Return the node's outputs, from what its body's are. Raises StateError."""
        context = self.context
        results = results[1:] if self._is_loop else results  # without the condition
        for index, after in enumerate(results[: self.states]):
            before = context.input(self.first + index)
            axes = zip(before.dims or (), after.dims or (), strict=False) if before is not None else ()
            for axis, (old, new) in enumerate(axes):
                if old and new and new.varies and not old.varies and old.frozen == new.frozen:
                    raise LoopStateConflict(context, LoopState(context.label, index), axis, new)
        starts = [context.input(self.first + index) or Value() for index in range(self.states)]
        kept = [join(a, b) for a, b in zip(starts, results, strict=False)]
        return [*kept, *(self._stacked(value, index) for index, value in enumerate(results[self.states :]))]

    @property
    def _is_loop(self) -> bool:
        return self.context.node.op_type == "Loop"

    def _stacked(self, value: Value, index: int) -> Value:
        if value.dims is None:
            return Value(value.dtype)
        axis = _axis(self.context, "scan_output_axes", index, len(value.dims) + 1)
        return Value(value.dtype, (*value.dims[:axis], self.steps, *value.dims[axis:]))


def iteration_of(context: NodeContext, body: onnx.GraphProto) -> Iteration | None:
    """Return how a node goes round its body, with its count mended; None if it does not, or as Scan did up to opset 8."""
    if not is_onnx(context.node.domain):
        return None
    if context.node.op_type == "Loop":
        return Iteration(context, body, 2, len(context.node.input) - 2, repair_trip_count(context, body))
    if context.node.op_type == "Scan" and context.rw.version >= 9:
        states = len(context.node.input) - context.attributes["num_scan_inputs"]
        scanned = context.input(states)
        dims = scanned.dims if scanned is not None else None
        steps = dims[_axis(context, "scan_input_axes", 0, len(dims))] if dims else None
        return Iteration(context, body, 0, states, steps)
    return None


def _axis(context: NodeContext, name: str, index: int, rank: int) -> int:
    axes = context.attributes.get(name)
    return int(axes[index]) % rank if axes else 0


def join(a: Value, b: Value) -> Value:
    """Return what is known of a value that is one or the other."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Value(a.dtype or b.dtype)
    return Value(a.dtype, tuple(x if x == y else None for x, y in zip(a.dims, b.dims, strict=True)))
