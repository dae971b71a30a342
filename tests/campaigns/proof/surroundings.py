"""Puts a model into other surroundings: a branch, a loop, a function, behind or before other operators, with open dims.

Each surrounding is a function of the original model, a variant of it, and the feed. It returns the variant in the surrounding
and the feed that fits it. The original is put there with itself as the variant. Unfit is raised if a model cannot stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["SURROUNDINGS", "Unfit", "in_function", "rename"]

Placed = tuple[onnx.ModelProto, dict[str, Any]]


class Unfit(Exception):
    """A model cannot stand in a surrounding."""


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def rename(nodes: Any, names: Mapping[str, str], *, outputs: bool) -> None:
    for node in nodes:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
        if outputs:
            for index, name in enumerate(node.output):
                node.output[index] = names.get(name, name)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                rename(attribute.g.node, names, outputs=False)
                for value in attribute.g.output:
                    value.name = names.get(value.name, value.name)


def _inner(model: onnx.ModelProto, suffix: str) -> tuple[list[onnx.NodeProto], list[onnx.ValueInfoProto]]:
    """Return the nodes and outputs of a model whose values have other names."""
    copy = _copy(model)
    names = {name: f"{name}_{suffix}" for node in copy.graph.node for name in node.output if name}
    rename(copy.graph.node, names, outputs=True)
    for value in copy.graph.output:
        if value.name not in names:
            raise Unfit("an output is no node's")
        value.name = names[value.name]
    return list(copy.graph.node), list(copy.graph.output)


def _with_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    copy = _copy(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def plain(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    return variant, feed


def in_function(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    if variant.ir_version < 8:
        variant = _copy(variant)
        variant.ir_version = 8
    graph = variant.graph
    inputs = [value.name for value in graph.input]
    inputs += [tensor.name for tensor in graph.initializer if tensor.name not in inputs]
    outputs = [value.name for value in graph.output]
    node = helper.make_node("Wrapped", inputs, outputs, domain="local")
    result = _with_nodes(variant, [node])
    result.functions.append(
        helper.make_function(
            "local", "Wrapped", inputs, outputs, list(graph.node), list(variant.opset_import)
        )
    )
    result.opset_import.append(helper.make_opsetid("local", 1))
    return result, feed


def in_branch(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    branches = []
    for model, name in ((variant, "then"), (original, "else")):
        nodes, outputs = _inner(model, name)
        branches.append(helper.make_graph(nodes, name, [], outputs))
    outputs = [value.name for value in variant.graph.output]
    node = helper.make_node("If", ["a_condition"], outputs, then_branch=branches[0], else_branch=branches[1])
    result = _with_nodes(variant, [node])
    result.graph.input.append(helper.make_tensor_value_info("a_condition", TensorProto.BOOL, []))
    return result, {**feed, "a_condition": np.array(True)}


def in_loop(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    nodes, outputs = _inner(variant, "body")
    if any(not value.type.HasField("tensor_type") for value in outputs):
        raise Unfit("an output is no tensor")
    nodes.append(helper.make_node("Identity", ["go_on"], ["goes_on"]))
    body = helper.make_graph(
        nodes,
        "body",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []), *outputs],
    )
    names = [value.name for value in variant.graph.output]
    result = _with_nodes(variant, [helper.make_node("Loop", ["two_rounds", ""], names, body=body)])
    result.graph.initializer.append(numpy_helper.from_array(np.array(2, np.int64), "two_rounds"))
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape")
    return result, feed


def in_scan(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    nodes, outputs = _inner(variant, "body")
    first = variant.graph.input[0]
    if any(not value.type.HasField("tensor_type") for value in (first, *outputs)):
        raise Unfit("a value is no tensor")
    inner = onnx.ValueInfoProto()
    inner.CopyFrom(first)
    inner.name = "one_slice"
    rename(nodes, {first.name: "one_slice"}, outputs=False)
    body = helper.make_graph(nodes, "body", [inner], outputs)
    names = [value.name for value in variant.graph.output]
    result = _with_nodes(
        variant, [helper.make_node("Scan", [first.name], names, body=body, num_scan_inputs=1)]
    )
    result.graph.input[0].type.tensor_type.shape.dim.insert(0, onnx.TensorShapeProto.Dimension(dim_value=2))
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape")
    return result, {**feed, first.name: np.stack([feed[first.name]] * 2)}


def _float_input(model: onnx.ModelProto, feed: Mapping[str, Any]) -> tuple[str, Any]:
    if not model.graph.input:
        raise Unfit("the model has no inputs")
    first = model.graph.input[0].name
    value = feed[first]
    if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.ndim < 2:
        raise Unfit("the first input is no matrix of floats")
    return first, value


def behind_matmul(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    first, value = _float_input(variant, feed)
    width = value.shape[-1]
    result = _copy(variant)
    rename(result.graph.node, {first: "a_product"}, outputs=False)
    result.graph.node.insert(0, helper.make_node("MatMul", [first, "a_matrix"], ["a_product"]))
    matrix = np.random.default_rng(3).standard_normal((width, width)).astype(np.float32)
    result.graph.initializer.append(numpy_helper.from_array(matrix / np.float32(width**0.5), "a_matrix"))
    return result, feed


def behind_conv(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    first, value = _float_input(variant, feed)
    if value.ndim != 4:
        raise Unfit("the first input is no image")
    channels = value.shape[1]
    result = _copy(variant)
    rename(result.graph.node, {first: "a_map"}, outputs=False)
    result.graph.node.insert(0, helper.make_node("Conv", [first, "a_filter"], ["a_map"], pads=[1, 1, 1, 1]))
    filters = np.random.default_rng(3).standard_normal((channels, channels, 3, 3)).astype(np.float32)
    result.graph.initializer.append(
        numpy_helper.from_array(filters / np.float32(3 * channels**0.5), "a_filter")
    )
    return result, feed


def _output(original: onnx.ModelProto, rank: int) -> tuple[str, tuple[int, ...]]:
    kind = original.graph.output[0].type
    shape = tuple(dim.dim_value for dim in kind.tensor_type.shape.dim)
    if kind.tensor_type.elem_type != TensorProto.FLOAT or len(shape) < rank or 0 in shape:
        raise Unfit("the first output is no float tensor of known shape")
    return original.graph.output[0].name, shape


def _followed(
    variant: onnx.ModelProto, old: str, nodes: list[onnx.NodeProto], info: onnx.ValueInfoProto
) -> onnx.ModelProto:
    result = _copy(variant)
    result.graph.node.extend(nodes)
    outputs = [info if value.name == old else value for value in variant.graph.output]
    del result.graph.output[:]
    result.graph.output.extend(outputs)
    return result


def before_matmul(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    name, shape = _output(original, 2)
    node = helper.make_node("MatMul", [name, "last_matrix"], ["last_product"])
    info = helper.make_tensor_value_info("last_product", TensorProto.FLOAT, None)
    result = _followed(variant, name, [node], info)
    matrix = np.random.default_rng(5).standard_normal((shape[-1], 7)).astype(np.float32)
    result.graph.initializer.append(numpy_helper.from_array(matrix, "last_matrix"))
    return result, feed


def before_argmax(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    name, shape = _output(original, 1)
    if shape[-1] < 2:
        raise Unfit("the last axis has one element")
    node = helper.make_node("ArgMax", [name], ["a_class"], axis=-1, keepdims=0)
    info = helper.make_tensor_value_info("a_class", TensorProto.INT64, None)
    return _followed(variant, name, [node], info), feed


def before_comparison(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    name, _ = _output(original, 0)
    node = helper.make_node("Greater", [name, "a_threshold"], ["an_answer"])
    info = helper.make_tensor_value_info("an_answer", TensorProto.BOOL, None)
    result = _followed(variant, name, [node], info)
    result.graph.initializer.append(numpy_helper.from_array(np.array(0.25, np.float32), "a_threshold"))
    return result, feed


def before_integers(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    name, _ = _output(original, 0)
    nodes = [
        helper.make_node("Clip", [name, "least", "most"], ["clipped"]),
        helper.make_node("Cast", ["clipped"], ["an_integer"], to=TensorProto.INT32),
    ]
    info = helper.make_tensor_value_info("an_integer", TensorProto.INT32, None)
    result = _followed(variant, name, nodes, info)
    for bound, value in (("least", -1000.0), ("most", 1000.0)):
        result.graph.initializer.append(numpy_helper.from_array(np.array(value, np.float32), bound))
    return result, feed


def before_sequence(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    kind = original.graph.output[0].type
    if not kind.HasField("tensor_type"):
        raise Unfit("the first output is no tensor")
    name = original.graph.output[0].name
    node = helper.make_node("SequenceConstruct", [name, name], ["a_sequence"])
    element = helper.make_tensor_type_proto(kind.tensor_type.elem_type, None)
    info = helper.make_value_info("a_sequence", helper.make_sequence_type_proto(element))
    return _followed(variant, name, [node], info), feed


def before_optional(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    kind = original.graph.output[0].type
    if not kind.HasField("tensor_type") or original.opset_import[0].version < 15:
        raise Unfit("the first output is no tensor, or there is no Optional yet")
    name = original.graph.output[0].name
    node = helper.make_node("Optional", [name], ["an_optional"])
    element = helper.make_tensor_type_proto(kind.tensor_type.elem_type, None)
    info = helper.make_value_info("an_optional", helper.make_optional_type_proto(element))
    return _followed(variant, name, [node], info), feed


def open_dims(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
    result = _copy(variant)
    for value in result.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_value:
                dim.dim_param = f"size_{dim.dim_value}"
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape") if value.type.HasField("tensor_type") else None
    return result, feed


def _typed(kind: int) -> Callable[[onnx.ModelProto, onnx.ModelProto, dict[str, Any]], Placed]:
    """Return the surrounding in which all floats have another type."""
    dtype = helper.tensor_dtype_to_np_dtype(kind)

    def retype(graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.output, *graph.value_info):
            for tensor in (value.type.tensor_type, value.type.sequence_type.elem_type.tensor_type):
                if tensor.elem_type == TensorProto.FLOAT:
                    tensor.elem_type = kind
        for tensor in graph.initializer:
            _retype_tensor(tensor)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    _retype_tensor(attribute.t)
                if attribute.HasField("g"):
                    retype(attribute.g)

    def _retype_tensor(tensor: TensorProto) -> None:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))

    def cast(value: Any) -> Any:
        if isinstance(value, list):
            return [cast(one) for one in value]
        return value.astype(dtype) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value

    def typed(original: onnx.ModelProto, variant: onnx.ModelProto, feed: dict[str, Any]) -> Placed:
        if not any(isinstance(one, np.ndarray) and one.dtype == np.float32 for one in feed.values()):
            raise Unfit("no input has floats")
        result = _copy(variant)
        retype(result.graph)
        return result, {name: cast(value) for name, value in feed.items()}

    return typed


SURROUNDINGS: dict[str, Callable[[onnx.ModelProto, onnx.ModelProto, dict[str, Any]], Placed]] = {
    "plain": plain,
    "function": in_function,
    "branch": in_branch,
    "loop": in_loop,
    "scan": in_scan,
    "behind MatMul": behind_matmul,
    "behind Conv": behind_conv,
    "before MatMul": before_matmul,
    "before ArgMax": before_argmax,
    "before Greater": before_comparison,
    "before Cast to int32": before_integers,
    "in a sequence": before_sequence,
    "in an optional": before_optional,
    "open dims": open_dims,
    "float16": _typed(TensorProto.FLOAT16),
    "double": _typed(TensorProto.DOUBLE),
}
