"""Declares the outputs of graphs and bodies, and their inner values, with as many axes as they have."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.engine.steps.decompose_model import body_scopes
from onnx_migrate.facts.node_inference import inferred_output
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shapes import set_dims
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.graphs import may_hold_graphs
from onnx_migrate.model.model import Model
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx

__all__ = ["declare_true_shapes"]


def declare_true_shapes(model: Model, *, inner: bool) -> list[str]:
    """Declare outputs with the number of axes that they have, if the declaration has another number; return their names.

    ONNX Runtime up to 1.11 fails on such an output of a branch in a loop, and 1.4 on one of the model. Up to 1.16 it fails on
    an output of a Scan's body if it cannot infer the number of axes. With `inner`, the function also corrects values in
    between: up to 1.5 ONNX Runtime does not load a model with a wrong one.
    """
    written = []
    for top, (_, opset) in zip(body_scopes(model), body_opsets(model.proto), strict=True):
        for scope in top.nested() if opset is not None else ():
            for value, shape in _wrong(scope, opset or 0, inner=inner):
                set_dims(value, shape)
                scope.record_type(value.name, ValueType(value.type.tensor_type.elem_type, shape))
                written.append(value.name)
    return written


def _wrong(
    scope: Scope, opset: int, *, inner: bool
) -> Iterator[tuple[onnx.ValueInfoProto, tuple[int | None, ...]]]:
    """Yield the outputs, or values, of a body that are not declared with as many axes as they have, with their true dims."""
    if not isinstance(scope.body, onnx.GraphProto):
        return
    # Scan stacks the outputs of its body, so their shapes matter.
    scanned = scope.parent is not None and scope.parent.body.node[int(scope.key[-3])].op_type == "Scan"
    for value in scope.body.output if scanned else ():
        value_type = scope.value_type(value.name)
        is_declared = value.type.tensor_type.HasField("shape") or value_type.container
        if value_type.shape is not None and value_type.dtype is not None and not is_declared:
            value.type.tensor_type.elem_type = value_type.dtype
            yield value, value_type.shape
    values = (*scope.body.output, *(scope.body.value_info if inner else ()))
    declared = {value.name: value for value in values if value.type.tensor_type.HasField("shape")}
    for node in scope.body.node:
        if not is_onnx(node.domain) or may_hold_graphs(node.domain, node.op_type):
            continue
        # Values without a declared shape cannot be wrong.
        for name in filter(declared.get, node.output):
            inferred = inferred_output(scope, node, name, opset)
            dims = len(declared[name].type.tensor_type.shape.dim)
            if inferred is not None and inferred.shape is not None and len(inferred.shape) != dims:
                yield declared[name], inferred.shape
