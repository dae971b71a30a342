"""onnx's shape inference, with values followed through shape arithmetic, at a cost that goes with the graph."""

from __future__ import annotations

from collections.abc import Iterable, Set

import onnx
from onnx import shape_inference

from onnx_migrate.model.graphs import nested_bodies, nested_nodes

__all__ = ["InferenceError", "infer_shapes", "without_fragile_ops"]

LONG = 1 << 16
"""Elements of a vector above which no shape arithmetic is meant."""

_NAMED = "a vector of "

FRAGILE = frozenset({"DictVectorizer", "LabelEncoder"})
"""Operators of ai.onnx.ml whose inference kills the process when their input's type is unknown (onnx 1.23)."""


class InferenceError(Exception):
    """onnx gives up on the model, as for a domain that is not imported; the message is onnx's, on one line."""


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a skeleton with what follows from its inputs. Raises InferenceError.

    Data propagation treats every vector as if it might be a shape: it makes a message for each element
    (DataPropagationContextImpl in onnx/shape_inference/implementation.h), so that a table of 10 million numbers
    costs half a gigabyte at each node that reads it. Long initializers and inputs go in as vectors of a length that
    has a name, which the result has as a number again.
    What FRAGILE operators give counts as unknown, unless they read an input of the model.
    """
    hidden = [tensor for tensor in proto.graph.initializer if len(tensor.dims) == 1 and tensor.dims[0] > LONG]
    long = bool(hidden) or any(map(_is_long, proto.graph.input))
    given = without_fragile_ops(_hide(proto, hidden) if long else proto)
    try:
        inferred = shape_inference.infer_shapes(given, data_prop=True)
    except (
        shape_inference.InferenceError,
        RuntimeError,
        ValueError,
        onnx.checker.ValidationError,
    ) as error:
        raise InferenceError(" ".join(str(error).split())) from error
    if long:
        _count(inferred.graph)
        del inferred.graph.input[:]
        inferred.graph.input.extend(proto.graph.input)
        inferred.graph.initializer.extend(hidden)
    return inferred


def _is_long(value: onnx.ValueInfoProto) -> bool:
    dims = value.type.tensor_type.shape.dim
    return len(dims) == 1 and dims[0].dim_value > LONG


def _hide(proto: onnx.ModelProto, hidden: list[onnx.TensorProto]) -> onnx.ModelProto:
    names = {tensor.name for tensor in hidden}
    given = onnx.ModelProto()
    given.CopyFrom(proto)
    tensors = [tensor for tensor in given.graph.initializer if tensor.name not in names]
    inputs = [value for value in given.graph.input if value.name not in names]
    del given.graph.initializer[:], given.graph.input[:]
    given.graph.initializer.extend(tensors)
    given.graph.input.extend(inputs)
    for value in filter(_is_long, given.graph.input):
        dim = value.type.tensor_type.shape.dim[0]
        dim.dim_param = f"{_NAMED}{dim.dim_value}"
    for tensor in hidden:
        name = f"{_NAMED}{tensor.dims[0]}"
        given.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, [name]))
    return given


def _count(graph: onnx.GraphProto) -> None:
    """Write lengths that got a name as numbers again."""
    for _, body in nested_bodies(graph):
        for value in (*body.value_info, *body.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param.startswith(_NAMED):
                    dim.dim_value = int(dim.dim_param.removeprefix(_NAMED))


def without_fragile_ops(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return what onnx's inference can be given: the model, or a copy without FRAGILE operators of unknown type.

    They get a name that onnx passes over.
    """
    owners: list[onnx.ModelProto | onnx.FunctionProto] = [proto, *proto.functions]
    if not any(entry.domain == "ai.onnx.ml" for owner in owners for entry in owner.opset_import):
        return proto
    given = onnx.ModelProto()
    given.CopyFrom(proto)
    _rename(given.graph.node, {value.name for value in given.graph.input if value.type.WhichOneof("value")})
    for function in given.functions:
        _rename(function.node, set())
    return given


def _rename(nodes: Iterable[onnx.NodeProto], typed: Set[str]) -> None:
    for node in nested_nodes(nodes):
        if node.op_type in FRAGILE and node.domain == "ai.onnx.ml" and not set(node.input) <= typed:
            node.op_type += "_of_unknown_type"
