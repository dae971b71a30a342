"""Whether the names of values are valid: each defined once in its body, each that is read or returned defined.

Source: onnx/docs/IR.md, "Graphs" (single static assignment, names of outer scopes are visible in sub-graphs).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain
from typing import NamedTuple

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import (
    Body,
    inputs_of_each,
    names_read,
    operators_of,
    output_names,
    outputs_of_each,
)
from onnx_migrate.model.validity.fault import Fault, where_of
from onnx_migrate.standard.schema import required_outputs

__all__ = ["Definitions", "definitions", "order_faults", "shadowing_faults", "value_faults"]


class Definitions(NamedTuple):
    """The definitions of a body: the names of its inputs, initializers and outputs of nodes, and all of them as a set.

    `read` holds the names that its nodes read, without their sub-graphs. `operators` has the domain and operator of
    each.
    """

    inputs: list[str]
    initializers: list[str]
    produced: list[str]
    names: frozenset[str]
    read: set[str]
    operators: set[tuple[str, str]]


def definitions(body: Body) -> Definitions:
    """Return the names of the values that a body defines."""
    constants: list[str] = []
    if isinstance(body, onnx.GraphProto):
        inputs = [value.name for value in body.input]
        constants = [tensor.name for tensor in body.initializer]
        constants += [sparse.values.name for sparse in body.sparse_initializer]
    else:
        inputs = list(body.input)
    produced = list(chain.from_iterable(outputs_of_each(body.node)))
    read = set(chain.from_iterable(inputs_of_each(body.node)))
    operators = operators_of(body.node)
    names = frozenset((*inputs, *constants, *produced)) - {""}
    return Definitions(inputs, constants, produced, names, read - {""}, operators)


def value_faults(body: Body, path: str, found: Definitions, outer: tuple[Set[str], ...]) -> Iterator[Fault]:
    """Yield the faults in the names of one body, without its sub-graphs.

    `found` has the body's definitions, and `outer` those of the bodies around it. The order of nodes does not matter.
    """
    yield from _repeated(body, path, found)
    if "" in found.produced:
        yield from _unnamed(body, path)
    defined = found.names
    # A name may come from a body around this one.
    undefined = found.read.difference(defined, *outer)
    if undefined:
        for node in body.node:
            for name in node.input:
                if name in undefined:
                    yield Fault(
                        code="undefined-name",
                        reason=f"it reads {name!r}, which no input, initializer or node defines",
                        where=where_of(path, node),
                        hint="correct the name of the input, or add what is missing",
                    )
    # The set of operators is small, so the node is searched only on a fault.
    if any(not operator for _, operator in found.operators):
        node = next(node for node in body.node if not node.op_type)
        yield Fault(
            code="invalid-node",
            reason="it has no operator",
            where=where_of(path, node),
            hint="set its op_type, or remove it",
        )
    outputs = output_names(body)
    if path == "graph" and not outputs:
        yield Fault(
            code="output-not-produced",
            reason="it has no output, so that it computes nothing",
            where=Where(path),
            hint="list the values that it shall return as outputs",
        )
    for name in outputs:
        if name not in defined:
            # An output must be computed in the body itself.
            around = any(name in names for names in outer)
            yield Fault(
                code="output-not-own" if around else "output-not-produced",
                reason=f"its output {name!r} is a value of a graph around it"
                if around
                else f"no node produces the output {name!r}",
                where=Where(path, name),
                hint="correct the name of the output, or leave the output out",
            )
    if isinstance(body, onnx.FunctionProto):
        yield from _function_outputs(body, path)


def _unnamed(body: Body, path: str) -> Iterator[Fault]:
    """Yield a fault for each node that leaves out an output which its operator always has."""
    for node in body.node:
        missing = required_outputs(node.domain, node.op_type) if "" in node.output else frozenset[int]()
        for output_index, name in enumerate(node.output):
            if not name and output_index in missing:
                yield Fault(
                    code="unnamed-output",
                    reason=f"its output {output_index} has no name, and only optional outputs may lack a name",
                    where=where_of(path, node),
                    hint="give the output a name",
                )


def _function_outputs(function: onnx.FunctionProto, path: str) -> Iterator[Fault]:
    """Yield a fault for each output of a function that is an input, or the same as another output."""
    for name in filter(None, _twice([*dict.fromkeys(function.input), *function.output])):
        kind = "an input" if name in function.input else "another output"
        yield Fault(
            code="output-not-own",
            reason=f"its output {name!r} is {kind} too",
            where=Where(path, name),
            hint="let an Identity produce the output",
        )


def shadowing_faults(node: onnx.NodeProto, path: str, visible: tuple[Set[str], ...]) -> Iterator[Fault]:
    """Yield a fault for each output of a sub-graph's node that has the name of a value around it, which is `visible` there."""
    for name in node.output:
        if name and any(name in names for names in visible):
            yield Fault(
                code="shadowed-name",
                reason=f"it produces {name!r}, and a value of a graph around it has that name",
                where=where_of(path, node),
                hint="rename one of them",
            )


def order_faults(body: Body, path: str, produced: Set[str]) -> Iterator[Fault]:
    """Yield a fault for the first node of a body that reads a value in front of the node that produces it."""
    ahead = set(produced)
    for node in body.node:
        read = names_read(node)
        if not ahead.isdisjoint(read):
            name = next(name for name in read if name in ahead)
            if name in node.output:
                return  # a cycle, which sorting finds
            yield Fault(
                code="not-sorted",
                reason=f"it reads {name!r}, which a node behind it produces",
                where=where_of(path, node),
                hint="put the nodes in order: onnx-migrate does that without --strict",
            )
            return
        ahead.difference_update(node.output)


def _repeated(body: Body, path: str, found: Definitions) -> Iterator[Fault]:
    for name in _twice(found.inputs):
        yield Fault(
            code="duplicate-name",
            reason=f"two inputs are called {name!r}",
            where=Where(path, name),
            hint="rename one of them",
        )
    for name in _twice(found.initializers):
        yield Fault(
            code="duplicate-initializer",
            reason=f"two initializers are called {name!r}, so it is unclear which one nodes read",
            where=Where(path, name),
            hint="remove or rename one of them",
        )
    before = {*found.inputs, *found.initializers}
    distinct = set(found.produced)
    # Most bodies have no repeated name, and need no search.
    if before.isdisjoint(distinct - {""}) and len(distinct) == len(found.produced):
        return
    for node in body.node:
        for name in node.output:
            if name and name in before:
                yield Fault(
                    code="not-ssa",
                    reason=f"it produces {name!r}, which is also an input, an initializer, or the output of another node",
                    where=where_of(path, node),
                    hint="rename one of the outputs",
                )
            before.add(name)


def _twice(names: list[str]) -> list[str]:
    """Return a name once for each repetition of it."""
    seen: set[str] = set()
    repeated: list[str] = []
    for name in names:
        if name in seen:
            repeated.append(name)
        seen.add(name)
    return repeated
