"""Operators that exporters write into ai.onnx under names that the standard lacks; onnx-migrate writes their meaning instead.

y = Erfc (x)      →      e = Erf (x)  y = Sub (1, e)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import all_nodes, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx

__all__ = ["has_unknown_operators", "write_unknown_operators"]

_ERF_SINCE = 9
"""The opset that Erf came with."""

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)


def has_unknown_operators(proto: onnx.ModelProto) -> bool:
    """Return whether a model has such an operator, outside its local functions of that name."""
    defined = any(is_onnx(function.domain) and function.name == "Erfc" for function in proto.functions)
    return not defined and any(map(_is_erfc, all_nodes(proto)))


def write_unknown_operators(model: Model) -> Iterator[tuple[str, str]]:
    """Replace such nodes by their meaning, in place; yield the label of each, and a sentence. Nodes of unknown type stay."""
    proto = model.proto
    bodies = scopes(proto, model.weights, result_ir_version=proto.ir_version)
    for top, (_, opset) in zip(bodies, body_opsets(proto), strict=True):
        for scope in list(top.nested()) if (opset or 0) >= _ERF_SINCE else ():
            yield from _rewritten(scope)


def _is_erfc(node: onnx.NodeProto) -> bool:
    plain = len(node.input) == len(node.output) == 1 and not node.attribute
    return node.op_type == "Erfc" and is_onnx(node.domain) and plain


def _rewritten(scope: Scope) -> Iterator[tuple[str, str]]:
    nodes: list[onnx.NodeProto] = []
    for node in scope.body.node:
        dtype = _type_of(node, scope) if _is_erfc(node) else None
        if dtype is None:
            nodes.append(node)
            continue
        unit = scope.add_constant(np.ones((), helper.tensor_dtype_to_np_dtype(dtype)), "one")
        error = scope.names.fresh(f"{node.output[0]}_erf")
        # Erfc is 1 - Erf, and each new value needs a name of its own.
        name = scope.names.fresh(f"{node_label(node)}_erf")
        nodes.append(helper.make_node("Erf", list(node.input), [error], name=name))
        nodes.append(helper.make_node("Sub", [unit, error], list(node.output), name=node.name))
        label = node_label(node)
        yield label, f"{label!r} (Erfc), as tf2onnx writes it, became 1 - Erf(x): ai.onnx has no Erfc"
    if len(nodes) > len(scope.body.node):
        # Deleting the list frees its messages, so they are copied first.
        written_nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del scope.body.node[:]
        scope.body.node.extend([*scope.leading_constants, *written_nodes])
        scope.leading_constants.clear()


def _type_of(node: onnx.NodeProto, scope: Scope) -> int | None:
    """Return the type of the elements, which the input and the output share; None if neither is known."""
    dtypes = (scope.value_type(name).dtype for name in (*node.input, *node.output))
    return next((dtype for dtype in dtypes if dtype in _FLOATS), None)
