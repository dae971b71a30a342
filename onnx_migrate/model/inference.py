"""onnx's shape inference, with values followed through shape arithmetic, at a cost that goes with the graph."""

from __future__ import annotations

import onnx
from onnx import shape_inference

__all__ = ["InferenceError", "infer_shapes"]

LONG = 1 << 16
"""Elements of a vector above which no shape arithmetic is meant."""


class InferenceError(Exception):
    """onnx gives up on the model, as for a domain that is not imported; the message is onnx's, on one line."""


def infer_shapes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of a skeleton with what follows from its inputs. Raises InferenceError.

    Data propagation treats every vector as if it might be a shape: it makes a message for each element
    (DataPropagationContextImpl in onnx/shape_inference/implementation.h), so that a table of 10 million numbers
    costs half a gigabyte at each node that reads it. Long initializers go in as vectors of unknown length.
    """
    hidden = [tensor for tensor in proto.graph.initializer if len(tensor.dims) == 1 and tensor.dims[0] > LONG]
    given = _hide(proto, hidden) if hidden else proto
    try:
        inferred = shape_inference.infer_shapes(given, data_prop=True)
    except (
        shape_inference.InferenceError,
        RuntimeError,
        ValueError,
        onnx.checker.ValidationError,
    ) as error:
        raise InferenceError(" ".join(str(error).split())) from error
    if hidden:
        del inferred.graph.input[:]
        inferred.graph.input.extend(proto.graph.input)
        inferred.graph.initializer.extend(hidden)
    return inferred


def _hide(proto: onnx.ModelProto, hidden: list[onnx.TensorProto]) -> onnx.ModelProto:
    names = {tensor.name for tensor in hidden}
    given = onnx.ModelProto()
    given.CopyFrom(proto)
    tensors = [tensor for tensor in given.graph.initializer if tensor.name not in names]
    inputs = [value for value in given.graph.input if value.name not in names]
    del given.graph.initializer[:], given.graph.input[:]
    given.graph.initializer.extend(tensors)
    given.graph.input.extend(inputs)
    for tensor in hidden:
        value = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, [None])
        given.graph.input.append(value)
    return given
