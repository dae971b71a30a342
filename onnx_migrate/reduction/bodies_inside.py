"""Fewer nodes inside the bodies of If, Loop, Scan and functions, if the failure needs these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import GraphProto

from onnx_migrate.model.graphs import names_read, subgraphs
from onnx_migrate.reduction.bench import Bench, edited
from onnx_migrate.reduction.bodies_outside import Outside, bodies_outside
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import constant_tensor, replace_all

__all__ = ["bypassed_in_functions", "fewer_inner_nodes"]


def fewer_inner_nodes(candidate: Candidate, bench: Bench) -> Candidate:
    """Remove nodes of bodies; recorded values of one iteration replace what they compute. Raises TimeOver."""
    for outside in list(bodies_outside(candidate)):
        recorded = bench.renewed(outside.candidate)
        if recorded is not None:
            candidate = _minimal_body(candidate, outside, recorded, bench)
    return candidate


def _minimal_body(candidate: Candidate, outside: Outside, recorded: Candidate, bench: Bench) -> Candidate:
    """Return the model with as few nodes in one body as show the failure."""
    size = max(1, len(_body(candidate, outside).node) // 2)
    while True:
        accepted = bench.first(_without_groups(candidate, outside, recorded, size))
        if accepted is not None:
            candidate = accepted
        elif size == 1:
            return candidate
        size = max(1, min(size if accepted is not None else size // 2, len(_body(candidate, outside).node)))


def _body(candidate: Candidate, outside: Outside) -> GraphProto:
    node = candidate.proto.graph.node[outside.place]
    return next(graph for name, _, graph in subgraphs(node) if name == outside.attribute)


def _without_groups(
    candidate: Candidate, outside: Outside, recorded: Candidate, size: int
) -> Iterator[Candidate | None]:
    count = len(_body(candidate, outside).node)
    for start in reversed(range(0, count, size)):
        yield _without(candidate, outside, recorded, range(start, min(start + size, count)))


def _without(
    candidate: Candidate, outside: Outside, recorded: Candidate, gone: Sequence[int]
) -> Candidate | None:
    """Return the model without some nodes of a body; None if a value that they compute is not known."""
    shorter = edited(candidate)
    body = _body(shorter, outside)
    lost = {name for index in gone for name in body.node[index].output if name}
    remaining_nodes = [node for index, node in enumerate(body.node) if index not in gone]
    read = {name for node in remaining_nodes for name in names_read(node)} | {
        value.name for value in body.output
    }
    for name in sorted(lost & read):
        value = recorded.values.array(outside.names[name])
        if value is None:
            return None
        body.initializer.append(constant_tensor(name, value, shorter.model.weights))
    replace_all(body.node, remaining_nodes)
    replace_all(body.initializer, [tensor for tensor in body.initializer if tensor.name in read])
    return shorter


def bypassed_in_functions(candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield the model without each node of its functions whose readers can read an input of the node instead."""
    for number, function in enumerate(candidate.proto.functions):
        for index, node in enumerate(function.node):
            # Some node of the function must still compute each of its outputs.
            if any(name in function.output for name in node.output):
                continue
            for name in dict.fromkeys(filter(None, node.input)):
                yield _bypassed(candidate, number, index, name)


def _bypassed(candidate: Candidate, number: int, place: int, name: str) -> Candidate:
    shorter = edited(candidate)
    nodes = shorter.proto.functions[number].node
    gone = [output for output in nodes[place].output if output]
    del nodes[place]
    for node in nodes:
        node.input[:] = [name if read in gone else read for read in node.input]
    return shorter
