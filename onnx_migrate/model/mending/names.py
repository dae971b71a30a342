"""Repairs names that neither onnx.checker nor ONNX Runtime accepts, if only one meaning is possible.

    then_branch = () => (z) { }                    then_branch = () => (z_1) { z_1 = Identity (z) }
    f (a) => (a, b, b) { b = Exp (a) }         →   f (a) => (a_1, b, b_1) { b = Exp (a) a_1 = Identity (a) b_1 = Identity (b) }
    "", i = TopK (x, k)                            topk, i = TopK (x, k)

A value of a sub-graph gets another name if a value around the sub-graph has its name. The nodes of sub-graphs and
functions get in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from onnx_migrate.model.graphs import (
    Body,
    bodies,
    function_path,
    initializer_names,
    node_label,
    subgraph_path,
    subgraphs,
)
from onnx_migrate.model.mending.tensors import Mending
from onnx_migrate.model.names import Names
from onnx_migrate.model.toposort import sort_body
from onnx_migrate.standard.schema import required_outputs

__all__ = ["mend_names"]

Outer = tuple[set[str], ...]
"""The names that a body can read of each body around it, as far as these are defined in front of it."""


def mend_names(proto: onnx.ModelProto, *, ordered: bool) -> Iterator[Mending]:
    """Repair the names of values in all bodies, in place; with `ordered`, put nodes in order.

    Raises InvalidModel for nodes that form a cycle, and with `ordered` for two that produce one value.
    """
    names = Names(proto)
    for function in proto.functions:
        yield from _function_outputs(function, names)
    yield from _Body("graph", (), names).mend(proto.graph, {})
    for function in proto.functions:
        yield from _Body(function_path(function), (), names).mend(function, {})
    for located in bodies(proto) if ordered else ():
        inside = bool(located.key) or isinstance(located.body, onnx.FunctionProto)
        if inside and sort_body(located):
            yield _mending("sub-graph", f"the nodes of {located.path} were put in order")


def _mending(subject: str, reason: str) -> Mending:
    return Mending(subject, f"{reason}; no runtime loads the model without that", unread=True)


def _function_outputs(function: onnx.FunctionProto, names: Names) -> Iterator[Mending]:
    """Let a node produce each output of a function, under a name of its own."""
    used_names = set(function.input)
    for index, name in enumerate(list(function.output)):
        if name in used_names and name:
            copy = _identity(function, name, names)
            function.output[index] = copy
            kind = "an input" if name in function.input else "another output"
            reason = f"output {name!r} of {function_path(function)} is {kind}, and became an Identity of it, {copy!r}"
            yield _mending(name, reason)
        used_names.add(name)


def _identity(body: Body, name: str, names: Names) -> str:
    """Append an Identity of a value to a body, and return its output."""
    copy = names.fresh(name)
    body.node.add(op_type="Identity", name=names.fresh(f"{name}_identity"), input=[name], output=[copy])
    return copy


class _Body:
    """One body during the repair of its names; `outer` holds the names that it can read from the bodies around it."""

    def __init__(self, path: str, outer: Outer, names: Names) -> None:
        self._path, self._outer, self._names = path, outer, names
        self._own: set[str] = set()
        self._renamed: dict[str, str] = {}

    def mend(self, body: Body, renamed: Mapping[str, str]) -> Iterator[Mending]:
        """Repair a body and those inside it; `renamed` has the new names of values around it."""
        if isinstance(body, onnx.GraphProto):
            self._own.update(value.name for value in body.input)
            self._own |= initializer_names(body)
        else:
            self._own.update(body.input)
        # A name that the body defines itself hides the outer value.
        self._renamed = {old: new for old, new in renamed.items() if old not in self._own}
        new_names: dict[str, str] = {}
        for node in body.node:
            for index, name in enumerate(node.input):
                if name in self._renamed:
                    node.input[index] = self._renamed[name]
            for attribute, index, graph in subgraphs(node):
                path = subgraph_path(self._path, node, attribute, index)
                # A sub-graph must not define the names of the bodies around it.
                inner = _Body(path, (*self._outer, self._own), self._names)
                yield from inner.mend(graph, self._renamed)
            yield from self._outputs(node, new_names)
        if isinstance(body, onnx.GraphProto) and self._outer:
            for value in body.value_info:
                # The declarations follow the values.
                value.name = new_names.get(value.name, value.name)
            yield from self._results(body)

    def _outputs(self, node: onnx.NodeProto, made: dict[str, str]) -> Iterator[Mending]:
        """Name the outputs that a node always has, and those with the name of a value around the body anew."""
        # Most nodes name all their outputs.
        required = required_outputs(node.domain, node.op_type) if "" in node.output else ()
        for index, name in enumerate(node.output):
            if not name and index in required:
                node.output[index] = self._names.fresh(node.op_type.lower())
                reason = f"output {index} of {node_label(node)!r} ({node.op_type}) had no name, and got one"
                yield _mending(node_label(node), reason)
            elif name and name not in self._own and any(name in values for values in self._outer):
                node.output[index] = made[name] = self._renamed[name] = self._names.fresh(name)
                reason = (
                    f"{name!r} of {self._path} has the name of a value around it, and became {made[name]!r}"
                )
                yield _mending(name, reason)
            self._own.add(node.output[index])

    def _results(self, graph: onnx.GraphProto) -> Iterator[Mending]:
        """Let a sub-graph return values of its own: an Identity stands for one of a body around it."""
        for value in graph.output:
            name = self._renamed.get(value.name, value.name)
            if name not in self._own and any(name in values for values in self._outer):
                copy = _identity(graph, name, self._names)
                reason = f"output {name!r} of {self._path} is a value around it, and became an Identity of it, {copy!r}"
                yield _mending(name, reason)
                name = copy
            value.name = name
