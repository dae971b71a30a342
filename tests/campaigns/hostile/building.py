"""Short forms by which the hostile models are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

__all__ = ["function", "graph", "model", "nested_bytes", "node", "value", "varint"]

OPSET = 17


def node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
) -> NodeProto:
    return helper.make_node(operator, list(inputs), list(outputs), domain=domain or None, **attributes)


def value(
    name: str, dims: Sequence[int | str | None] | None = (2,), dtype: int = TensorProto.FLOAT
) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, None if dims is None else list(dims))


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    initializers: Sequence[TensorProto] = (),
) -> GraphProto:
    return helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(initializers))


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto] | None = None,
    outputs: Sequence[ValueInfoProto] | None = None,
    initializers: Sequence[TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = OPSET - 4,
) -> ModelProto:
    """Return a model of an old opset, so that there is something to migrate; x and y are float[2] by default."""
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, 1) for domain in sorted({item.domain for item in functions})]
    body = graph(
        nodes,
        [value("x")] if inputs is None else inputs,
        [value("y")] if outputs is None else outputs,
        initializers,
    )
    return helper.make_model(body, opset_imports=imports, ir_version=8, functions=list(functions))


def function(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[str] = ("a",),
    outputs: Sequence[str] = ("b",),
    opset: int = OPSET - 4,
) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("f", 1)]
    return helper.make_function("f", name, list(inputs), list(outputs), list(nodes), imports)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def nested_bytes(fields: Sequence[int], inner: bytes) -> bytes:
    """Return a message in a message in a message, each in the field of that number of the one around it, outermost first."""
    for number in reversed(fields):
        inner = varint(number << 3 | 2) + varint(len(inner)) + inner
    return inner
