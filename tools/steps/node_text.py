"""Models as text: each operator with its attributes, or each node on a line, with small constants in the place of their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

__all__ = ["node_lines", "operator_list"]

_LISTED = 8
"""A constant of up to so many elements stands in the text with its elements, a larger one with its type and shape."""

Graph = onnx.GraphProto


def operator_list(graph: Graph) -> str:
    """Return the operators of a graph in order, such as "Unsqueeze×2 Sub Greater<axis=1> Where"."""
    words = [_operator(node) for node in graph.node if node.op_type != "Constant"]
    if not words:
        words = [_operator(node) for node in graph.node]
    runs = ((word, len(list(same))) for word, same in groupby(words))
    return " ".join(f"{word}×{count}" if count > 1 else word for word, count in runs) or "no node"


def node_lines(graph: Graph) -> Iterator[str]:
    """Yield a line for each node of a graph, such as "y = Softmax(x, axis=1)"."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {node.output[0]: value for node in graph.node if (value := _constant(node)) is not None}
    given = {value.name for value in graph.output}
    for node in graph.node:
        if node.output[0] in constants and node.output[0] not in given:
            continue
        inputs = [_tensor(constants[name]) if name in constants else name or "None" for name in node.input]
        yield f"{', '.join(node.output)} = {node.op_type}({', '.join([*inputs, *_attributes(node)])})"
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from (f"    {line}" for line in node_lines(attribute.g))


def _operator(node: onnx.NodeProto) -> str:
    attributes = ", ".join(_attributes(node))
    return f"{node.op_type}<{attributes}>" if attributes else node.op_type


def _attributes(node: onnx.NodeProto) -> Iterable[str]:
    return [f"{item.name}={_value(item)}" for item in sorted(node.attribute, key=lambda item: item.name)]


def _value(attribute: AttributeProto) -> str:
    if attribute.type == AttributeProto.GRAPH:
        return f"{{{operator_list(attribute.g)}}}"
    if attribute.type == AttributeProto.TENSOR:
        return _tensor(attribute.t)
    return _plain(helper.get_attribute_value(attribute))


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return f"{value:.7g}"  # the digits of float32
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_plain, value))}]"
    return str(value)


def _tensor(tensor: onnx.TensorProto) -> str:
    array = numpy_helper.to_array(tensor)
    if array.size > _LISTED:
        return f"{array.dtype}{list(array.shape)}"
    return _plain(array.astype(np.float64).tolist() if array.dtype.kind == "f" else array.tolist())


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    if node.op_type != "Constant" or node.attribute[0].name != "value":
        return None
    return node.attribute[0].t
