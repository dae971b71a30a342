"""The version of a node's operator, as reports show it."""

from __future__ import annotations

import onnx

from onnx_migrate.standard.opsets import imported, onnx_opset
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = ["node_version"]


def node_version(
    node: onnx.NodeProto, model: onnx.ModelProto, owner: onnx.FunctionProto | None = None
) -> int:
    """Return the opset in which the form of a node begins, 0 if the installed onnx does not know its operator.

    `owner` is the local function whose body has the node. A function imports opsets of its own.
    """
    imports, own = (model if owner is None else owner).opset_import, is_onnx(node.domain)
    opset = onnx_opset(imports, ir_version=model.ir_version) if own else imported(imports, node.domain)
    form = signature_at(node.domain, node.op_type, opset or 1)
    return form.since_version if form else 0
