"""The bodies of nodes in a model: sub-graphs that nodes hold, and local functions that nodes call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import onnx
from onnx import AttributeProto

from onnx_migrate.spec.schema import is_onnx, signature, versions

__all__ = ["Body", "FunctionKey", "called", "function_key", "subgraphs"]

Body = onnx.GraphProto | onnx.FunctionProto

FunctionKey = tuple[str, str, str]
"""A local function's domain, name and overload."""


_NONE: tuple[tuple[str, int, onnx.GraphProto], ...] = ()


def function_key(function: onnx.FunctionProto) -> FunctionKey:
    """Return what a node must name to call `function`."""
    return function.domain, function.name, getattr(function, "overload", "")


def called(node: onnx.NodeProto) -> FunctionKey:
    """Return the function a node would call, if there is one of that key."""
    return node.domain, node.op_type, getattr(node, "overload", "")


def subgraphs(node: onnx.NodeProto) -> Iterable[tuple[str, int, onnx.GraphProto]]:
    """Give the attribute name, place and graph of each sub-graph of a node."""
    return _graphs(node) if _may_hold_graphs(node.domain, node.op_type) else _NONE


def _graphs(node: onnx.NodeProto) -> Iterator[tuple[str, int, onnx.GraphProto]]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, 0, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for place, graph in enumerate(attribute.graphs):
                yield attribute.name, place, graph


@cache
def _may_hold_graphs(domain: str, operator: str) -> bool:
    """Tell whether an operator may have a graph as an attribute; looking at all nodes' attributes costs too much."""
    if not is_onnx(domain):
        return True
    known = versions(domain, operator)
    kinds = {kind for version in known for kind in signature(domain, operator, version).attributes.values()}
    return not known or not kinds.isdisjoint((AttributeProto.GRAPH, AttributeProto.GRAPHS))
