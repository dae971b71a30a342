"""What goes into the bodies of Loop and Scan and comes out of them, and the states they carry round."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx

from onnx_migrate.spec.schema import is_onnx

from .domain import Dim, Value
from .graph_state import State
from .node_context import Place, StateError
from .rules.broadcast import repeat
from .rules.trip_count import count

__all__ = ["Rounds", "common", "rounds"]


@dataclass(frozen=True)
class Rounds:
    """A Loop or Scan: where its states and its scanned inputs begin, among its inputs and among its body's."""

    place: Place
    body: onnx.GraphProto
    first: int
    states: int
    """How many states there are; they come first among the node's outputs."""
    steps: Dim | None = None
    """How many rounds there are."""

    def begin(self, widened: Collection[tuple[State, int, Dim]]) -> dict[str, Value]:
        """Repeat states that must begin with the batch, and return what is known of the body's inputs."""
        place = self.place
        for state, axis, dim in widened:
            if state.node == place.label:
                repeat(place, self.first + state.index, axis, dim)
        offset = len(self.body.input) - (len(place.node.input) - self.first)
        given: dict[str, Value] = {}
        for index, value in enumerate(self.body.input[offset:]):
            outer = place.input(self.first + index)
            if outer is None:
                continue
            dims = outer.dims
            if index >= self.states and dims is not None:
                axis = _axis(place, "scan_input_axes", index - self.states, len(dims))
                dims = (*dims[:axis], *dims[axis + 1 :])
            given[value.name] = Value(outer.dtype, dims, types=outer.types)
        return given

    def carried(self) -> dict[str, State]:
        """Return the body's inputs that are states."""
        offset = len(self.body.input) - (len(self.place.node.input) - self.first)
        names = [value.name for value in self.body.input[offset : offset + self.states]]
        return {name: State(self.place.label, index) for index, name in enumerate(names)}

    def end(self, results: Sequence[Value]) -> list[Value]:
        """Return the node's outputs, from what its body's are. Raises StateError."""
        place = self.place
        results = results[1:] if self._counts else results  # without the condition
        for index, after in enumerate(results[: self.states]):
            before = place.input(self.first + index)
            axes = zip(before.dims or (), after.dims or (), strict=False) if before is not None else ()
            for axis, (old, new) in enumerate(axes):
                if old and new and new.varies and not old.varies and old.frozen == new.frozen:
                    raise StateError(place, State(place.label, index), axis, new)
        starts = [place.input(self.first + index) or Value() for index in range(self.states)]
        kept = [common(a, b) for a, b in zip(starts, results, strict=False)]
        return [*kept, *(self._stacked(value, index) for index, value in enumerate(results[self.states :]))]

    @property
    def _counts(self) -> bool:
        return self.place.node.op_type == "Loop"

    def _stacked(self, value: Value, index: int) -> Value:
        if value.dims is None:
            return Value(value.dtype)
        axis = _axis(self.place, "scan_output_axes", index, len(value.dims) + 1)
        return Value(value.dtype, (*value.dims[:axis], self.steps, *value.dims[axis:]))


def rounds(place: Place, body: onnx.GraphProto) -> Rounds | None:
    """Return how a node goes round its body, with its count mended; None if it does not, or as Scan did up to opset 8."""
    if not is_onnx(place.node.domain):
        return None
    if place.node.op_type == "Loop":
        return Rounds(place, body, 2, len(place.node.input) - 2, count(place, body))
    if place.node.op_type == "Scan" and place.rw.version >= 9:
        states = len(place.node.input) - place.attributes["num_scan_inputs"]
        scanned = place.input(states)
        dims = scanned.dims if scanned is not None else None
        steps = dims[_axis(place, "scan_input_axes", 0, len(dims))] if dims else None
        return Rounds(place, body, 0, states, steps)
    return None


def _axis(place: Place, name: str, index: int, rank: int) -> int:
    axes = place.attributes.get(name)
    return int(axes[index]) % rank if axes else 0


def common(a: Value, b: Value) -> Value:
    """Return what is known of a value that is one or the other."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Value(a.dtype or b.dtype)
    return Value(a.dtype, tuple(x if x == y else None for x, y in zip(a.dims, b.dims, strict=True)))
