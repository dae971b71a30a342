"""An estimate of the time and memory that one run of a model needs, without a run.

It uses only the file and the sizes of the inputs. A symbol of an input counts as 1 unless its size is known. A size
that depends on data counts as 0. So the estimate is a lower bound. Reads no weights.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

import onnx
from onnx import GraphProto, TensorProto

from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.facts.running_cost.bodies import Bodies, Exhausted
from onnx_migrate.facts.running_cost.tally import Tally
from onnx_migrate.facts.running_cost.value_estimate import Dims, ValueEstimate
from onnx_migrate.model.graphs import function_key, initializer_types, nested_bodies
from onnx_migrate.model.payloads import byte_size

__all__ = ["Estimate", "estimate"]

_MOST_NODES = 20_000
"""The most nodes of a model for onnx's inference: more would need a second, and other limits stop a long run anyway."""

_MOST_BYTES = 1 << 50
"""The most bytes of a value that the estimate considers; no machine can hold a larger one."""


@dataclass(frozen=True)
class Estimate:
    """The cost of one run. `file` is the bytes of the model with its weights; `inputs` and `outputs` are the bytes of these."""

    tally: Tally
    file: int
    inputs: int
    outputs: int


def estimate(
    proto: onnx.ModelProto, sizes: Mapping[str, Dims] | None = None, memory: int | None = None
) -> Estimate:
    """Return the least cost of one run of a model; `sizes` are those of inputs that a caller feeds.

    The estimate ends at a value of more than `memory` bytes.
    """
    sizes = sizes or {}
    graph = proto.graph
    functions = {function_key(function): function for function in proto.functions}
    bodies = Bodies(functions, lambda: _inferred(proto), memory or _MOST_BYTES)
    # Bodies see the values around them.
    env = ChainMap({value.name: _of_input(value, sizes) for value in graph.input})
    overridden = {name: value for name, value in env.items() if name in sizes}
    inputs = sum(value.bytes for value in env.values())
    outputs: list[ValueEstimate] = []
    # The tally so far is a lower bound of the cost.
    with suppress(Exhausted, RecursionError):
        outputs = bodies.main(graph, env, overridden)
    # Weights in files are part of the model's size.
    stored = sum(byte_size(dims, dtype) or 0 for _, dtype, dims in initializer_types(graph))
    return Estimate(bodies.tally, proto.ByteSize() + stored, inputs, sum(value.bytes for value in outputs))


def _of_input(value: onnx.ValueInfoProto, sizes: Mapping[str, Dims]) -> ValueEstimate:
    """Return the estimate of an input of the model; a symbol and an undeclared dim count as 1."""
    tensor = value.type.tensor_type
    dtype, text = tensor.elem_type, int(tensor.elem_type == TensorProto.STRING)
    if value.name in sizes:
        return ValueEstimate(tuple(sizes[value.name]), dtype, text_bytes=text)
    if not tensor.HasField("shape"):
        return ValueEstimate(None, dtype, text_bytes=text)
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else 1 for dim in tensor.shape.dim)
    return ValueEstimate(dims if min(dims, default=0) >= 0 else None, dtype, text_bytes=text)


def _inferred(proto: onnx.ModelProto) -> dict[str, ValueEstimate]:
    """Return the values for which onnx's inference finds every size as a number."""
    # The inference of a large model takes longer than its estimate is worth.
    if sum(len(body.node) for _, body in nested_bodies(proto.graph)) > _MOST_NODES:
        return {}
    try:
        inferred = infer_shapes(skeleton(proto))
    except InferenceError:
        return {}
    values: dict[str, ValueEstimate] = {}
    for _, body in nested_bodies(inferred.graph):
        assert isinstance(body, GraphProto)
        for value in (*body.value_info, *body.output):
            tensor = value.type.tensor_type
            dims = tuple(dim.dim_value for dim in tensor.shape.dim)
            if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
                values[value.name] = ValueEstimate(
                    dims if min(dims, default=0) >= 0 else None, tensor.elem_type
                )
    return values
