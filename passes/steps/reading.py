"""Who reads a value, in a body and its sub-graphs; lets all of them read another one."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.facts.scope import Scope
from onnx_migrate.model.graphs import nested_bodies, output_names, subgraphs

__all__ = ["readers", "rename_reads"]


def readers(scope: Scope, value: str) -> Iterator[tuple[str, int]]:
    """Yield the operator and the input's index of each node that reads a value, ("", 0) where it is an output of a body."""
    for _, body in nested_bodies(scope.body):
        if value in output_names(body):
            yield "", 0
        for node in body.node:
            for index, name in enumerate(node.input):
                if name == value:
                    yield node.op_type, index


def rename_reads(body: onnx.GraphProto | onnx.FunctionProto, old: str, new: str) -> None:
    """Let all that reads a value of a body, in its sub-graphs too, read another one; outputs of a graph as well."""
    if isinstance(body, onnx.GraphProto):
        for value in body.output:
            if value.name == old:
                value.name = new
    for node in body.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new
        for _, _, inner in subgraphs(node):
            if all(value.name != old for value in inner.input):
                rename_reads(inner, old, new)
