"""Repairs the declarations of a graph: inputs listed twice, values without a type, and types that are not the values' own."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from onnx_migrate.model.graphs import initializer_types
from onnx_migrate.model.mending.tensors import Mending
from onnx_migrate.model.validity.node_types import constant_type, type_text
from onnx_migrate.model.validity.structure import type_problem
from onnx_migrate.standard.schema import is_onnx

__all__ = ["mend_declarations"]


def mend_declarations(graph: onnx.GraphProto, *, main: bool) -> Iterator[Mending]:
    """Repair the declared types of a graph, in place, from its initializers and Constants.

    ONNX Runtime ignores the `value_info` of initializers, Constants, inputs, outputs, and values that do not exist. In
    a sub-graph it ignores only that of Constants and of values that do not exist.
    """
    constants = {
        node.output[0]: text
        for node in graph.node
        if node.op_type == "Constant" and is_onnx(node.domain) and node.output
        if (text := constant_type(node))
    }
    if main:
        yield from _inputs(graph)
        yield from _outputs(graph, constants)
    computed = {name for node in graph.node for name in node.output if name not in constants}
    named = {value.name for value in (*graph.input, *graph.output)} | {
        name for name, *_ in initializer_types(graph)
    }
    # A copy, because the loop removes entries.
    for value in list(graph.value_info):
        other = value.name in constants and type_text(value.type) not in (None, constants[value.name])
        broken = type_problem(value.type) is not None
        # ONNX Runtime ignores the other entries.
        read = value.name in computed or (not main and value.name in named)
        if other or (broken and (not read or (main and value.name in named))):
            graph.value_info.remove(value)
            yield Mending(
                value.name, f"value_info declares a wrong type of {value.name!r}, which is passed over"
            )


def _inputs(graph: onnx.GraphProto) -> Iterator[Mending]:
    """Declare the type of an initializer that is listed without one, and list each once."""
    # An initializer has a type even if its input declares none.
    types = {
        name: onnx.helper.make_tensor_type_proto(dtype, dims)
        for name, dtype, dims in initializer_types(graph)
    }
    seen: set[str] = set()
    for value in list(graph.input):
        if value.name not in types:
            continue
        if value.name in seen:
            at = max(input_index for input_index, other in enumerate(graph.input) if other.name == value.name)
            del graph.input[at]
            yield Mending(
                value.name, f"initializer {value.name!r} is listed among the inputs twice: once is enough"
            )
        elif not value.type.WhichOneof("value"):
            value.type.CopyFrom(types[value.name])
            yield Mending(
                value.name,
                f"initializer {value.name!r} is listed among the inputs without a type: it has its own",
            )
        seen.add(value.name)


def _dims(attribute: onnx.AttributeProto) -> list[int]:
    """Return the dims of the value of a Constant."""
    if attribute.HasField("t"):
        return list(attribute.t.dims)
    if attribute.HasField("sparse_tensor"):
        return list(attribute.sparse_tensor.dims)
    count = len(attribute.floats) + len(attribute.ints) + len(attribute.strings)
    return [count] if count else []


def _outputs(graph: onnx.GraphProto, constants: dict[str, str]) -> Iterator[Mending]:
    """Declare the real types of outputs that are inputs, initializers or Constants, if the graph declares other types."""
    types = {value.name: value.type for value in graph.input}
    for name, dtype, dims in initializer_types(graph):
        types[name] = onnx.helper.make_tensor_type_proto(dtype, dims)
    for node in graph.node:
        if node.op_type == "Constant" and node.output and node.output[0] in constants:
            element = constants[node.output[0]].removeprefix("tensor(").removesuffix(")").upper()
            dtype = onnx.TensorProto.DataType.Value(element)
            types[node.output[0]] = onnx.helper.make_tensor_type_proto(dtype, _dims(node.attribute[0]))
    for value in graph.output:
        own = types.get(value.name)
        if own is None or not value.type.WhichOneof("value"):
            continue
        if type_problem(value.type) or type_text(value.type) != type_text(own):
            value.type.CopyFrom(own)
            yield Mending(
                value.name,
                f"output {value.name!r} is declared as another type than it has: declared as {type_text(own)}",
            )
