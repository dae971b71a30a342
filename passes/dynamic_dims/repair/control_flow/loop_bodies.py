"""Loop and Scan: the values of their bodies' inputs and outputs, and the loop-carried values.

The trip count of a Loop that reads an axis step by step may be its frozen length, and is repaired.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from onnx_migrate.model.graphs import producers
from onnx_migrate.standard.schema import is_onnx

from ..domain import Array, Dim, SampledValue
from ..domain.values import join
from ..graph_state import GraphState, LoopState, upstream
from ..node_context import LoopStateConflict, NodeContext
from ..operand_edits import expand_operand
from ..tracked import Tracked

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

    def body_inputs(self, expanded_states: Collection[tuple[LoopState, int, Dim]]) -> dict[str, SampledValue]:
        """Return the values of the body's inputs, after expanding the initial values of `expanded_states`."""
        context = self.context
        for state, axis, dim in expanded_states:
            if state.node == context.label:
                expand_operand(context, self.first + state.index, axis, dim)
        inputs: dict[str, SampledValue] = {}
        for index, declared in enumerate(self.body.input[self._offset :]):
            outer = context.input(self.first + index)
            if outer is None:
                continue
            dims = outer.dims
            if index >= self.states and dims is not None:
                axis = _axis(context, "scan_input_axes", index - self.states, len(dims))
                dims = (*dims[:axis], *dims[axis + 1 :])
            # A state changes in each iteration, so its first elements say nothing about the next ones.
            inputs[declared.name] = SampledValue(outer.dtype, dims, types=outer.types)
        return inputs

    def loop_states(self) -> dict[str, LoopState]:
        """Return which state each loop-carried input of the body is."""
        names = [value.name for value in self.body.input[self._offset : self._offset + self.states]]
        return {name: LoopState(self.context.label, index) for index, name in enumerate(names)}

    def outputs(self, results: Sequence[SampledValue]) -> list[SampledValue]:
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
        initial = [context.input(self.first + index) or SampledValue() for index in range(self.states)]
        final = [join(a, b) for a, b in zip(initial, results, strict=False)]
        return [*final, *(self._stacked(value, index) for index, value in enumerate(results[self.states :]))]

    def tracked_inputs(self) -> dict[str, Tracked]:
        """Return the values of the body's inputs that are followed, in the first iteration."""
        tracked: dict[str, Tracked] = {}
        for index, declared in enumerate(self.body.input[self._offset :]):
            known = self.context.graph_state.tracked(self.context.node.input[self.first + index])
            dims = self.context.dims(self.first + index)
            if index >= self.states and dims is not None:
                known = known.step(_axis(self.context, "scan_input_axes", index - self.states, len(dims)))
            tracked[declared.name] = known
        return tracked

    def constant_inputs(self) -> dict[str, str]:
        """Return the states of a Loop that are small constants and that its body does not change.

        The keys are names of the body's inputs, the values are names of the node's inputs.
        """
        if self.context.node.op_type != "Loop":
            return {}
        nodes = producers(self.body)
        return {
            self.body.input[index].name: name
            for index, name in enumerate(self.context.node.input[2:], 2)
            if self.context.constant(index) is not None and _is_invariant(self.body, index, nodes)
        }

    def tracked_later(self, tracked: Mapping[str, Tracked], state: GraphState) -> dict[str, Tracked]:
        """Return these inputs as later iterations get them too; `state` is the body after one iteration."""
        later = dict(tracked)
        states = self.body.input[self._offset :][: self.states]
        for index, (declared, result) in enumerate(zip(states, self._results, strict=False)):
            known = later[declared.name].join(state.tracked(result.name))
            later[declared.name] = known.within(self.context.dims(self.first + index))
        return later

    def track_outputs(self, tracked: Mapping[str, Tracked], state: GraphState) -> None:
        """Follow the node's outputs, whose states are those that later iterations get."""
        inputs = self.body.input[self._offset :]
        for index, (name, result) in enumerate(zip(self.context.node.output, self._results, strict=False)):
            known, dims = state.tracked(result.name), state.value(result.name).dims
            if index < self.states:
                known = tracked[inputs[index].name].join(known)
            elif dims is not None:
                axis = _axis(self.context, "scan_output_axes", index - self.states, len(dims) + 1)
                known = known.stacked(axis)
            self.context.graph_state.track(name, known)

    @property
    def _results(self) -> list[onnx.ValueInfoProto]:
        """The body's outputs without the condition: the states after an iteration, then the values to stack."""
        return [*self.body.output[self.context.node.op_type == "Loop" :]]

    @property
    def _offset(self) -> int:
        """The index of the first state among the body's inputs."""
        return len(self.body.input) - (len(self.context.node.input) - self.first)

    def _stacked(self, value: SampledValue, index: int) -> SampledValue:
        if value.dims is None:
            return SampledValue(value.dtype)
        axis = _axis(self.context, "scan_output_axes", index, len(value.dims) + 1)
        return SampledValue(value.dtype, (*value.dims[:axis], self.trip_count, *value.dims[axis:]))


def iteration_of(context: NodeContext, body: onnx.GraphProto) -> Iteration | None:
    """Return how a Loop or Scan iterates over its body, after repairing a Loop's trip count.

    None for other operators, and for Scan up to opset 8, whose inputs have a batch axis of their own.
    """
    node = context.node
    if not is_onnx(node.domain):
        return None
    if node.op_type == "Loop":
        return Iteration(context, body, 2, len(node.input) - 2, _repaired_trip_count(context, body))
    if node.op_type == "Scan" and context.rw.version >= 9:
        states = len(node.input) - context.attributes["num_scan_inputs"]
        dims = context.dims(states)
        trip_count = dims[_axis(context, "scan_input_axes", 0, len(dims))] if dims else None
        return Iteration(context, body, 0, states, trip_count)
    return None


def _axis(context: NodeContext, name: str, index: int, rank: int) -> int:
    axes = context.attributes.get(name)
    return int(axes[index]) % rank if axes else 0


_COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})


def _repaired_trip_count(context: NodeContext, body: onnx.GraphProto) -> Dim | None:
    """Make a Loop that gathers from a varying axis by its counter iterate to the end of it; return that axis.

    The count is the Loop's trip count, a state that the body does not change, or a constant that the body compares
    the counter with. Returns None if there is no such axis, or several.
    """
    nodes = producers(body)
    states = {value.name: context.input(index) for index, value in enumerate(body.input[2:], 2)}
    counters = {body.input[0].name, *(name for name, value in states.items() if value and value.dims == ())}
    along = {dim.sizes: dim for dim in _axes_read(context, body, nodes, counters)}
    if len(along) != 1:
        return None
    dim = next(iter(along.values()))
    length = context.name_of(dim)
    for index in range(len(context.node.input)):
        stays = index == 0 or (index > 1 and _is_invariant(body, index, nodes))
        array = context.integers(index) if stays else None
        if array is not None and array.size == 1 and array.item() == dim.frozen:
            name = _emit_length(context, dim, array, index)
            reason = f"trip count {dim.frozen} → {length}, the length of the axis that the loop reads"
            context.set_input(index, name, reason)
    for node in body.node:
        if node.op_type not in _COMPARISONS or not any(
            _depends_on(name, nodes, counters) for name in node.input
        ):
            continue
        for at, name in enumerate(node.input):
            array = _constant(context, body, nodes, name)
            if array is not None and array.size == 1 and array.item() == dim.frozen:
                node.input[at] = _emit_length(context, dim, array, 0)
                context.rw.note(
                    f"{node.op_type} with {dim.frozen} → with {length}, the length of the axis that the loop reads"
                )
    return dim


def _axes_read(
    context: NodeContext, body: onnx.GraphProto, nodes: Mapping[str, onnx.NodeProto], counters: Set[str]
) -> Iterator[Dim]:
    """Yield the varying axes of outer values along which the body gathers one step in each iteration."""
    own = {value.name: index for index, value in enumerate(body.input)}
    for node in body.node:
        if (
            node.op_type != "Gather"
            or node.input[0] in nodes
            or not _depends_on(node.input[1], nodes, counters)
        ):
            continue
        index = own.get(node.input[0])
        value = context.graph_state.value(node.input[0]) if index is None else context.input(index)
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        dim = value.dims[axis] if value is not None and value.dims else None
        if dim is not None and dim.varies and not dim.of_batch:
            yield dim


def _depends_on(name: str, nodes: Mapping[str, onnx.NodeProto], counters: Set[str]) -> bool:
    return any(other in counters for other in upstream(name, nodes))


def _is_invariant(body: onnx.GraphProto, index: int, nodes: Mapping[str, onnx.NodeProto]) -> bool:
    name = body.output[index - 1].name
    producer = nodes.get(name)
    if producer is not None and producer.op_type == "Identity":
        name = producer.input[0]
    return name == body.input[index].name


def _constant(
    context: NodeContext, body: onnx.GraphProto, nodes: Mapping[str, onnx.NodeProto], name: str
) -> Array | None:
    for tensor in body.initializer:
        if tensor.name == name:
            return numpy_helper.to_array(tensor)
    producer = nodes.get(name)
    if producer is None:
        return context.rw.constant_value(name) if name not in {value.name for value in body.input} else None
    if producer.op_type != "Constant":
        return None
    array = onnx.helper.get_attribute_value(producer.attribute[0])
    return numpy_helper.to_array(array) if isinstance(array, onnx.TensorProto) else np.asarray(array)


def _emit_length(context: NodeContext, dim: Dim, array: Array, index: int) -> str:
    """Write a length in the type and shape of the constant that it replaces."""
    name = context.emit_length(dim, array.dtype, index)
    if not array.ndim:
        return name
    return context.rw.before("Reshape", [name, context.rw.constant(np.array(array.shape, np.int64), "shape")])
