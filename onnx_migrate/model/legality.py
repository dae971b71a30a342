"""Is every node of every body valid at the opset its body imports? The post-condition of a migration."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from onnx_migrate.errors import IllegalModel, Where
from onnx_migrate.model.graphs import FunctionKey, called, function_key, subgraphs
from onnx_migrate.spec.opsets import imported, onnx_opset
from onnx_migrate.spec.schema import is_onnx, misfit, signature_at

__all__ = ["check_legal"]


def check_legal(proto: onnx.ModelProto, domain: str = "") -> None:
    """Raise IllegalModel for the first node that the schema of its body's opset does not allow.

    Looks at the main graph, all sub-graphs and local functions; other domains than `domain`, by default ai.onnx,
    are not judged.
    """
    functions = {function_key(function) for function in proto.functions}
    bodies: list[tuple[str, Iterable[onnx.NodeProto], onnx.ModelProto | onnx.FunctionProto]]
    bodies = [("graph", proto.graph.node, proto)]
    bodies += [(f"function {item.domain}:{item.name}", item.node, item) for item in proto.functions]
    for path, nodes, owner in bodies:
        if domain:
            opset = imported(owner.opset_import, domain)
        else:
            opset = onnx_opset(owner.opset_import, ir_version=proto.ir_version, name=path)
        _check(nodes, path, opset, functions, domain)


def _check(
    nodes: Iterable[onnx.NodeProto], path: str, opset: int | None, functions: set[FunctionKey], domain: str
) -> None:
    for node in nodes:
        for attribute, _, graph in subgraphs(node):
            _check(graph.node, f"{path}/{node.name or node.op_type}:{attribute}", opset, functions, domain)
        other = node.domain != domain if domain else not is_onnx(node.domain)
        if other or (functions and called(node) in functions):
            continue
        if opset is None:
            raise IllegalModel(
                f"stands in a body that does not import {domain or 'ai.onnx'}",
                where=Where(path, node.name, node.op_type),
            )
        form = signature_at(node.domain, node.op_type, opset)
        complaint = misfit(node, form) if form else f"is not an operator of opset {opset}"
        if complaint:
            raise IllegalModel(complaint, where=Where(path, node.name, node.op_type, opset))
