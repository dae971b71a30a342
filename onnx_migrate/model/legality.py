"""Legality, the post-condition of a migration: every node is valid at the opset that its body imports."""

from __future__ import annotations

import onnx

from onnx_migrate.errors import IllegalModel, Where
from onnx_migrate.model.graphs import LocatedBody, bodies, called, function_key
from onnx_migrate.spec.opsets import imported, onnx_opset
from onnx_migrate.spec.schema import is_onnx, schema_violation, signature_at

__all__ = ["check_legal"]


def check_legal(proto: onnx.ModelProto, domain: str = "") -> None:
    """Raise IllegalModel for the first node that violates the schema of its operator at its body's opset.

    Checks the nodes of `domain`, by default ai.onnx, in the main graph, all sub-graphs and local functions; calls of
    local functions are not checked.
    """
    functions = {function_key(function) for function in proto.functions}
    for located in bodies(proto):
        opset = _opset(located, proto.ir_version, domain)
        for node in located.body.node:
            other = node.domain != domain if domain else not is_onnx(node.domain)
            if other or (functions and called(node) in functions):
                continue
            complaint = _complaint(node, opset, domain)
            if complaint:
                raise IllegalModel(complaint, where=Where(located.path, node.name, node.op_type, opset))


def _complaint(node: onnx.NodeProto, opset: int | None, domain: str) -> str | None:
    if opset is None:
        return f"is in a graph or function that does not import {domain or 'ai.onnx'}"
    form = signature_at(node.domain, node.op_type, opset)
    return schema_violation(node, form) if form else f"is not an operator of opset {opset}"


def _opset(located: LocatedBody, ir_version: int, domain: str) -> int | None:
    imports = located.owner.opset_import
    if domain:
        return imported(imports, domain)
    return onnx_opset(imports, ir_version=ir_version, name=located.path)
