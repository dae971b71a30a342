"""Whether the names of values are valid: each defined once in its body, each that is read or returned defined.

Source: onnx/docs/IR.md, "Graphs" (single static assignment, names of outer scopes are visible in sub-graphs).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import chain
from typing import NamedTuple

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import Body, inputs_of_each, operators_of, output_names, outputs_of_each
from onnx_migrate.model.validity.fault import Fault, where_of

__all__ = ["Definitions", "definitions", "value_faults"]


class Definitions(NamedTuple):
    """What a body defines: the names of its inputs, initializers and outputs of nodes, and all of them as a set.

    `read` holds what its nodes read, without their sub-graphs, and `operators` the domain and operator of each.
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

    `found` is what it defines, and `outer` what the bodies around it define. The order of nodes is not considered.
    """
    yield from _repeated(body, path, found)
    defined = found.names
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
        if name not in defined and not any(name in names for names in outer):
            yield Fault(
                code="output-not-produced",
                reason=f"no node produces the output {name!r}",
                where=Where(path, name),
                hint="correct the name of the output, or leave the output out",
            )


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
