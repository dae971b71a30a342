"""Which nodes the elements of an input reach, in sub-graphs and local functions too, through nodes that can be inverted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import initializer_names, nested_nodes, subgraphs
from onnx_migrate.standard.schema import CONTROL_FLOW
from onnx_migrate.verify.inputs.constraints.facts import Argument, Facts
from onnx_migrate.verify.inputs.constraints.value_ranges import without_functions
from onnx_migrate.verify.inputs.corners.paths import Path, paths_behind

__all__ = ["Flow", "Meeting"]

_DEEPEST = 64
"""Nodes after which an input is not followed any further."""

_MOST_PATHS = 3
"""Paths on which one value is followed."""


@dataclass(frozen=True)
class Meeting:
    """A node that reads elements of an input, and the path from the input to it."""

    argument: Argument
    path: Path


class Flow:
    """The values of a model and the nodes that read them; `shapes` are those of the inputs."""

    def __init__(self, model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]]) -> None:
        self.model = without_functions(model)
        self.facts = Facts(self.model, shapes)
        self.nodes = list(nested_nodes(self.model.graph.node))
        self._readers: dict[str, list[tuple[onnx.NodeProto, int]]] = {}
        self._copies: dict[str, list[str]] = {}
        """The values that have the elements of a value again: in a body, behind one, or in the next turn of a loop."""
        for node in self.nodes:
            for index, name in enumerate(node.input):
                if name:
                    self._readers.setdefault(name, []).append((node, index))
            if node.op_type in CONTROL_FLOW or node.op_type == "SequenceMap":
                self._link(node)

    @cached_property
    def operators(self) -> frozenset[str]:
        """The operators of the model, of its sub-graphs and of the local functions that are called."""
        return frozenset(node.op_type for node in self.nodes)

    @cached_property
    def stored(self) -> frozenset[str]:
        """The names of the initializers of the main graph."""
        return frozenset(initializer_names(self.model.graph))

    def meetings(self, name: str) -> Iterator[Meeting]:
        """Yield every node that elements of a value reach, unchanged or through steps that can be inverted."""
        paths: dict[str, int] = {name: 1}
        waiting = [(name, Path(), 0)]
        while waiting:
            value, path, depth = waiting.pop()
            behind = [(copy, path) for copy in self._copies.get(value, ())]
            for node, index in self._readers.get(value, ()):
                argument = Argument(node, index, self.facts)
                yield Meeting(argument, path)
                behind.extend(paths_behind(argument, path))
            for other, longer in behind:
                # Values may lie on a cycle of a loop.
                if other and depth < _DEEPEST and paths.get(other, 0) < _MOST_PATHS:
                    paths[other] = paths.get(other, 0) + 1
                    waiting.append((other, longer, depth + 1))

    def turns(self, name: str) -> Iterator[str]:
        """Yield the counters of the loops whose trip count is an input."""
        for meeting in self.meetings(name):
            if meeting.argument.node.op_type == "Loop" and meeting.argument.index == 0:
                for _, _, body in subgraphs(meeting.argument.node):
                    yield from (value.name for value in body.input[:1])

    def _link(self, node: onnx.NodeProto) -> None:
        for _, _, body in subgraphs(node):
            inputs, outputs = [value.name for value in body.input], [value.name for value in body.output]
            if node.op_type == "If":
                # The outputs of a branch are those of the If.
                pairs = list(zip(outputs, node.output, strict=False))
            elif node.op_type == "Loop":
                # The first two inputs are the counter and the condition.
                carried = len(inputs) - 2
                pairs = [
                    *zip(node.input[2:], inputs[2:], strict=False),
                    *zip(outputs[1:], node.output, strict=False),
                ]
                # A carried value comes back in the next round.
                pairs += zip(outputs[1 : carried + 1], inputs[2:], strict=False)
            else:
                pairs = [*zip(node.input, inputs, strict=False), *zip(outputs, node.output, strict=False)]
            for before, behind in pairs:
                self._copies.setdefault(before, []).append(behind)
