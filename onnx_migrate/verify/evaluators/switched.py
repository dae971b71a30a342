"""An original whose groups of nodes compute in a narrow type or not, by inputs: one session stands for many results.

To load a result takes longer than to run it, and a search for the nodes that must keep their type tries many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import onnx
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.model.names import Names
from onnx_migrate.verify.evaluators.interface import Runnable
from onnx_migrate.verify.evaluators.strict import STORED_ONCE, is_exact, rounding

__all__ = ["switched"]


def switched(
    original: Runnable,
    result: Runnable,
    kind: int,
    groups: Sequence[Sequence[tuple[BodyKey, str]]],
    *,
    weights: bool = False,
) -> tuple[Runnable, list[str]]:
    """Return the original with values rounded like in `result`, and an input for each group of nodes that prevents rounding.

    The nodes of groups are named by their bodies and first outputs. While the group's input, a boolean, is true, outputs of its
    nodes are not rounded. Weights are rounded whatever these inputs are; with `weights` the inputs prevent the rounding of
    weights that the nodes read instead.
    """
    model = original.proto()
    frames, names = frames_of(model, TypeTable(model)), Names(model)
    narrow = {
        name
        for result_frame in frames_of(result.model, TypeTable(result.model))
        for name, value in result_frame.values.items()
        if value.dtype == kind or _widens(value, kind)
    }
    switches = [names.fresh(f"keep_{group_index}") for group_index in range(len(groups))]
    by_place = {
        group_index: switch for switch, group in zip(switches, groups, strict=True) for group_index in group
    }
    by_step = {
        step: by_place.get((frame.key, step.node.output[0])) for frame in frames for step in frame.steps
    }
    for frame in reversed(frames):  # a body is copied with those inside it
        _Rounding(frame, kind, narrow, names, by_step, weights).write()
    for switch in switches:
        model.graph.input.append(onnx.helper.make_tensor_value_info(switch, TensorProto.BOOL, []))
    return original.with_structure(model), switches


def _widens(value: Value, kind: int) -> bool:
    """Return whether a Cast makes a value from one of a type, for example for an output that keeps its own type."""
    cast_source = value.maker.inputs[0] if value.maker is not None and value.maker.is_a("Cast") else None
    return cast_source is not None and cast_source.dtype == kind


class _Rounding:
    """Writes the nodes that round the values of one body.

    Nodes of one group that stand together are in one If with two branches, and only one branch rounds. An If for each value would
    take longer to load and run than the nodes that it rounds.
    """

    def __init__(
        self,
        frame: Frame,
        kind: int,
        narrow: set[str],
        names: Names,
        switches: Mapping[Step, str | None],
        weights: bool,
    ) -> None:
        self._frame, self._kind, self._narrow, self._weights = frame, kind, narrow, weights
        self._names, self._switches = names, switches
        self._nodes: list[onnx.NodeProto] = []
        self._read: dict[Value, str] = {}
        self._wide: dict[tuple[Value, str | None], bool] = {}
        """For each value and each group of nodes that reads it, whether the value may hold numbers that are not rounded."""

    def write(self) -> None:
        waiting: dict[str, list[Step]] = {}
        for step in self._frame.steps:
            if not self._weights:
                # With `weights`, the switches decide about weights instead.
                self._round_weights(step)
            is_sequence = any(value.container for value in step.made)
            # The branches of an If need values of one type.
            switch = None if is_sequence else self._switches[step]
            for maker in _makers(step, self._frame):
                other = self._switches[maker]
                # A group must be written before a node that reads it.
                if other is not None and other != switch and other in waiting:
                    self._choose(other, waiting.pop(other))
            if switch is None:
                self._nodes += self._rounding([step], self._read)
            else:
                waiting.setdefault(switch, []).append(step)
        for switch, steps in waiting.items():
            self._choose(switch, steps)
        del self._frame.body.node[:]
        self._frame.body.node.extend(self._nodes)

    def _round_weights(self, step: Step) -> None:
        for index, value in enumerate(step.inputs):
            if value is not None and self._is_weight(value):
                step.node.input[index] = self._rounded(value, self._read, self._nodes)

    def _choose(self, switch: str, steps: list[Step]) -> None:
        """Write nodes of one group; none of them reads the output of a node that stands between them."""
        inside = {*steps}
        inner_names = {
            value.name: self._names.fresh(f"{value.name}_inside")
            for step in steps
            for value in step.made
            if value.is_output or any(reader not in inside for reader, _ in value.readers)
        }
        plain_nodes = [_copy(step.node) for step in steps]
        rounding = self._rounding(steps, {})
        # An If costs time, and is useless without rounding.
        if len(rounding) == len(plain_nodes):  # nothing is rounded
            self._nodes += plain_nodes
            return
        then, otherwise = _branch(plain_nodes, inner_names), _branch(rounding, inner_names)
        chosen = onnx.helper.make_node(
            "If", [switch], [*inner_names], then_branch=then, else_branch=otherwise
        )
        self._nodes.append(chosen)

    def _rounding(self, steps: Sequence[Step], read: dict[Value, str]) -> list[onnx.NodeProto]:
        """Return the given nodes with rounding nodes beside them; `read` gets the names of values rounded for reading."""
        nodes: list[onnx.NodeProto] = []
        for step in steps:
            node = _copy(step.node)
            is_narrow = not self._weights and any(value.name in self._narrow for value in step.made)
            # Moving elements does not round.
            computes = is_narrow and not self._only_moves(step)
            for index, value in enumerate(step.inputs):
                if value is None:
                    continue
                if self._weights if self._is_weight(value) else computes and self._is_rounded(value, step):
                    node.input[index] = self._rounded(value, read, nodes)
            nodes.append(node)
            for index, value in enumerate(step.outputs if computes else ()):
                if value is not None and value.dtype == TensorProto.FLOAT and value.name in self._narrow:
                    node.output[index] = self._names.fresh(f"{value.name}_wide")
                    nodes += self._round(node.output[index], value.name)
        return nodes

    def _rounded(self, value: Value, read: dict[Value, str], nodes: list[onnx.NodeProto]) -> str:
        """Return the name of a rounded value; if `read` does not have it, add the nodes that round it to `nodes`."""
        if value not in read:
            read[value] = self._names.fresh(f"{value.name}_read")
            nodes += self._round(value.name, read[value])
        return read[value]

    def _is_weight(self, value: Value) -> bool:
        """Return whether a value is a constant that a result stores in the narrow type, whichever nodes read it."""
        tensor = value.tensor
        return tensor is not None and value.name in self._narrow and prod(tensor.dims) > STORED_ONCE

    def _round(self, source: str, target: str) -> list[onnx.NodeProto]:
        return rounding(source, self._names.fresh(f"{target}_narrow"), target, self._kind)

    def _is_wide_constant(self, value: Value | None) -> bool:
        if value is None or value.tensor is None or value.dtype != TensorProto.FLOAT:
            return False
        return value.name not in self._narrow

    def _is_rounded(self, value: Value, step: Step) -> bool:
        """Return whether a node of the narrow type must round an input, because the node that computes it does not."""
        if value.dtype != TensorProto.FLOAT:
            return False
        if value.tensor is not None:
            return value.name in self._narrow
        return self._may_be_wide(value, self._switches[step])

    def _may_be_wide(self, value: Value, switch: str | None) -> bool:
        """Return whether nodes of a group may read unrounded numbers from a value."""
        if (value, switch) not in self._wide:
            maker = value.maker
            self._wide[value, switch] = (
                maker is None
                # Values outside are never rounded.
                or value.name not in self._narrow
                or (
                    maker.frame is self._frame and self._only_moves(maker) and self._moves_wide(maker, switch)
                )
                or (not is_exact(maker) and self._switches[maker] not in (None, switch))
            )
        return self._wide[value, switch]

    def _moves_wide(self, step: Step, switch: str | None) -> bool:
        wide_inputs = [
            value for value in step.read if value.dtype == TensorProto.FLOAT and value.tensor is None
        ]
        return any(self._may_be_wide(value, switch) for value in wide_inputs)

    def _only_moves(self, step: Step) -> bool:
        return is_exact(step) and not any(map(self._is_wide_constant, step.inputs))


def _makers(step: Step, frame: Frame) -> Iterator[Step]:
    """Yield the nodes of a body whose outputs a node of that body reads, directly or in a body inside it."""
    for value in step.read:
        if value.maker is not None and value.maker.frame is frame:
            yield value.maker
    for _, inner in step.inner:
        for other in inner.steps:
            yield from _makers(other, frame)


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    return copy


def _branch(nodes: list[onnx.NodeProto], given: Mapping[str, str]) -> onnx.GraphProto:
    """Return a branch of nodes that returns some of their values; `given` has the names outside and inside."""
    for node in nodes:
        node.input[:] = [given.get(name, name) for name in node.input]
        node.output[:] = [given.get(name, name) for name in node.output]
    graph = onnx.helper.make_graph(nodes, "branch", [], [])
    for name in given.values():
        graph.output.add().name = name
    return graph
