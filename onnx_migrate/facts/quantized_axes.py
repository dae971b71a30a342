"""Finds scales that do not fit the axis of a QuantizeLinear or DequantizeLinear. No runtime runs such a node; errors come late.
Source: the texts of QuantizeLinear-21 and DequantizeLinear-21. A vector of scales has one scale for each entry along
the axis. With a block_size, scales have the rank of the data, and one scale for each block along the axis.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import all_nodes, bodies, initializer_types, node_label
from onnx_migrate.model.model import Model
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx

__all__ = ["axis_faults"]

_OPERATORS = ("QuantizeLinear", "DequantizeLinear")

_AXIS_SINCE = 13
"""The first version of the operators that has an axis."""

Shape = tuple[int | None, ...]


def axis_faults(model: Model) -> Iterator[tuple[Where, str]]:
    """Yield the nodes whose scales do not fit their axis, each with the problem, as far as shapes are known."""
    dequantizers = [node for node in all_nodes(model.proto) if _is_asked(node)]
    stored = _stored(model.proto) if dequantizers else {}
    if all(_fits_as_stored(node, stored) for node in dequantizers):
        return  # as of most models, so that no types need to be inferred
    tops = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)
    for top, (_, opset) in zip(tops, body_opsets(model.proto), strict=True):
        for scope in top.nested() if (opset or 0) >= _AXIS_SINCE else ():
            for node in filter(_is_asked, scope.body.node):
                reason = _fault(node, scope)
                if reason is not None:
                    yield Where(scope.path, node_label(node), node.op_type, opset), reason


def _stored(proto: onnx.ModelProto) -> dict[str, Shape]:
    """Return the shapes of the tensors that a model stores, by name."""
    shapes: dict[str, Shape] = {}
    for located in bodies(proto):
        if isinstance(located.body, onnx.GraphProto):
            shapes.update((name, dims) for name, _, dims in initializer_types(located.body))
    for node in all_nodes(proto):
        if node.op_type == "Constant" and node.output and node.attribute and node.attribute[0].HasField("t"):
            shapes[node.output[0]] = tuple(node.attribute[0].t.dims)
    return shapes


def _fits_as_stored(node: onnx.NodeProto, stored: dict[str, Shape]) -> bool:
    """Return whether a node has one scale, or stored data that its stored scales fit."""
    data, scales = map(stored.get, node.input[:2])
    if scales is None or any(attribute.ref_attr_name for attribute in node.attribute):
        return False
    if data is None:
        block = any(attribute.name == "block_size" and attribute.i for attribute in node.attribute)
        return not block and scales in ((), (1,))
    return _misfit(node, data, scales) is None


def _is_asked(node: onnx.NodeProto) -> bool:
    return node.op_type in _OPERATORS and is_onnx(node.domain) and len(node.input) > 1


def _fault(node: onnx.NodeProto, scope: Scope) -> str | None:
    if any(attribute.ref_attr_name for attribute in node.attribute):
        return None
    data, scales = (scope.value_type(name).shape for name in node.input[:2])
    return None if data is None or scales is None or None in scales else _misfit(node, data, scales)


def _misfit(node: onnx.NodeProto, data: Shape, scales: Shape) -> str | None:
    """Return how scales do not fit the axis of their data; None if they do."""
    # The default axis of both operators is 1.
    attributes = {attribute.name: attribute for attribute in node.attribute}
    axis = attributes["axis"].i if "axis" in attributes else 1
    block = attributes["block_size"].i if "block_size" in attributes else 0
    if not -len(data) <= axis < len(data):
        return None
    # One scale for the whole tensor fits every axis.
    if not block and scales in ((), (1,)):
        return None
    # With blocks the scale has an axis for each axis of the data.
    if len(scales) != (len(data) if block else 1):
        wanted = (
            f"as many axes as its data {_text(data)}, as it has blocks of {block}" if block else "at most one"
        )
        return f"its scale {list(scales)} has {count_of(len(scales), 'axis')}, and must have {wanted}"
    at = axis % len(data)
    if _fits(data, scales, at, block):
        return None
    others = [other_axis for other_axis in range(len(data)) if _fits(data, scales, other_axis, block)]
    fitting = f"fits axis {others[0]}" if others else "fits no axis"
    blocks = f" in blocks of {block}" if block else ""
    return f"its scale {list(scales)} {fitting} of data {_text(data)}{blocks}, and its axis is {axis}"


def _fits(data: Shape, scales: Shape, axis: int, block: int) -> bool:
    """Return whether scales may be those of an axis; an open dim fits all."""
    if not block:
        # The last block of an axis may be shorter, so the number of blocks is rounded up.
        return data[axis] in (None, scales[0])
    wanted = [dim if index != axis or dim is None else -(-dim // block) for index, dim in enumerate(data)]
    return all(dim in (None, scale) for dim, scale in zip(wanted, scales, strict=True))


def _text(shape: Shape) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"
