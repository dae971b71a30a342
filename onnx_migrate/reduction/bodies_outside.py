"""The bodies of If, Loop and Scan in place of these nodes: the failure may lie inside, and bisection works on the main graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, NodeProto

from onnx_migrate.model.graphs import initializer_names, subgraphs
from onnx_migrate.model.names import Names
from onnx_migrate.reduction.bench import edited
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import constant_tensor, drop_unread, replace_all
from onnx_migrate.reduction.ports import array_type
from onnx_migrate.standard.schema import CONTROL_FLOW, is_onnx

__all__ = ["Outside", "bodies_outside", "value_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Outside:
    """A model in which a body stands in place of its node; `names` are the new names of the body's values."""

    candidate: Candidate
    place: int
    attribute: str
    names: Mapping[str, str]


def bodies_outside(candidate: Candidate) -> Iterator[Outside]:
    """Yield the model with each body in place of its node: a branch, or one iteration of a loop with its first values."""
    for index, node in enumerate(candidate.proto.graph.node):
        if node.op_type not in CONTROL_FLOW or not is_onnx(node.domain):
            continue
        for attribute, _, body in subgraphs(node):
            outside = _outside(candidate, index, attribute, body)
            if outside is not None:
                yield outside


def value_of(candidate: Candidate, name: str) -> Array | None:
    """Return the recorded value of an input, weight or inner value; None if it is not known or no tensor."""
    if name in candidate.feed:
        value = candidate.feed[name]
        return value if isinstance(value, np.ndarray) else None
    for tensor in candidate.proto.graph.initializer:
        if tensor.name == name:
            return candidate.model.weights.array(tensor)
    return candidate.values.array(name)


def _outside(candidate: Candidate, place: int, attribute: str, body: GraphProto) -> Outside | None:
    """Return the model with one body in place of its node; None if a value that enters it is not known."""
    node = candidate.proto.graph.node[place]
    if node.op_type != "If" and not candidate.is_static:
        return None
    unwrapped = edited(candidate)
    writer = _Writer(unwrapped, Names(unwrapped.proto))
    entering = _entering(candidate, node, body)
    if entering is None:
        return None
    feed = writer.enter(body, entering, candidate)
    nodes = writer.write(body, _results(node, body))
    graph = unwrapped.proto.graph
    old_nodes = list(graph.node)
    replace_all(graph.node, [*old_nodes[:place], *nodes, *old_nodes[place + 1 :]])
    drop_unread(graph)
    return Outside(candidate.with_model(unwrapped.model, feed), place, attribute, writer.renamed)


def _results(node: NodeProto, body: GraphProto) -> list[tuple[str, str]]:
    """Return the outputs of a body with those of its node; a Loop's condition has none."""
    skipped = 1 if node.op_type == "Loop" else 0
    inner = [value.name for value in body.output][skipped:]
    return [pair for pair in zip(inner, node.output, strict=False) if pair[1]]


def _entering(candidate: Candidate, node: NodeProto, body: GraphProto) -> dict[str, str | Array] | None:
    """Return, for the inputs of a body, the outer value or the numbers of the first iteration; None if they are not known."""
    inner = [value.name for value in body.input]
    if node.op_type == "If":
        return {}
    if node.op_type == "Loop":
        first: list[str | Array] = [np.array(0, np.int64), np.array(True)]
        return dict(zip(inner, [*first, *node.input[2:]], strict=False))
    attributes = {attribute.name: attribute for attribute in node.attribute}
    count = attributes["num_scan_inputs"].i
    states = len(node.input) - count
    axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else [0] * count
    values: dict[str, str | Array] = dict(zip(inner, node.input[:states], strict=False))
    for name, outer, axis in zip(inner[states:], node.input[states:], axes, strict=False):
        value = value_of(candidate, outer)
        if value is None or not value.shape[axis]:
            return None
        values[name] = np.asarray(value.take(0, axis))
    return values


@dataclass
class _Writer:
    """Writes the values of a body into the main graph, under new names."""

    candidate: Candidate
    fresh: Names

    def __post_init__(self) -> None:
        self.renamed: dict[str, str] = {}

    def enter(
        self, body: GraphProto, entering: Mapping[str, str | Array], before: Candidate
    ) -> dict[str, Any]:
        """Add inputs and initializers for the values that enter the body; return the values of all inputs."""
        graph, feed = self.candidate.proto.graph, dict(before.feed)
        for name, source in entering.items():
            if isinstance(source, str):
                self.renamed[name] = source
                continue
            self.renamed[name] = self.fresh.fresh(name)
            port = array_type(self.renamed[name], source)
            # The counter and the condition of a Loop are scalars, and the same in every first iteration.
            if source.ndim and port is not None:
                graph.input.append(port)
                feed[self.renamed[name]] = source
            else:
                graph.initializer.append(
                    constant_tensor(self.renamed[name], source, self.candidate.model.weights)
                )
        for tensor in body.initializer:
            self.renamed[tensor.name] = self.fresh.fresh(tensor.name)
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = self.renamed[tensor.name]
        return feed

    def write(self, body: GraphProto, results: Sequence[tuple[str, str]]) -> list[NodeProto]:
        """Return the nodes of the body, which compute the outputs of its node."""
        computed_names = {name for node in body.node for name in node.output if name}
        copies: list[NodeProto] = []
        for inner, outer in results:
            if inner in computed_names and inner not in self.renamed:
                self.renamed[inner] = outer
            else:
                copies.append(onnx.helper.make_node("Identity", [inner], [outer]))
        for name in sorted(computed_names - self.renamed.keys()):
            self.renamed[name] = self.fresh.fresh(name)
        return [_renamed(node, self.renamed) for node in (*body.node, *copies)]


def _renamed(node: NodeProto, names: Mapping[str, str]) -> NodeProto:
    """Return a copy of a node with other names of values, in its sub-graphs too."""
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    copy.output[:] = [names.get(name, name) for name in node.output]
    for _, _, graph in subgraphs(copy):
        _rename_graph(graph, names)
    return copy


def _rename_graph(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename the outer values that a graph reads, in place."""
    own = {value.name for value in graph.input} | initializer_names(graph)
    own.update(name for node in graph.node for name in node.output)
    # A value of this graph hides an outer one of the same name.
    outer = {name: new for name, new in names.items() if name not in own}
    for node in graph.node:
        node.input[:] = [outer.get(name, name) for name in node.input]
        for _, _, inner in subgraphs(node):
            _rename_graph(inner, outer)
    for value in graph.output:
        value.name = outer.get(value.name, value.name)
