"""Declared shapes of values, and the shapes that onnx infers from the declarations of the inputs alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from onnx_migrate.errors import CannotMigrate
from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.model.graphs import Body, bodies, directly_inside, fed_inputs
from onnx_migrate.standard.schema import is_onnx

__all__ = [
    "Dims",
    "InferredOutputs",
    "contradict",
    "dims_of",
    "dims_text",
    "drop_value_info",
    "forget_output_shapes",
    "forget_symbols",
    "inferred_graph",
    "inferred_outputs",
    "set_dims",
]

Dims = tuple[int | str | None, ...]


@dataclass(frozen=True)
class InferredOutputs:
    """The fact that the dims of a main graph's outputs were inferred from these inputs, and from no other declaration."""

    inputs: tuple[bytes, ...]
    dims: dict[str, Dims | None]

    @classmethod
    def of(cls, inferred: onnx.GraphProto) -> InferredOutputs:
        """Return the fact for a graph that onnx has inferred."""
        return cls(_inputs(inferred), {value.name: dims_of(value) for value in inferred.output})

    def confirms(self, graph: onnx.GraphProto) -> bool:
        """Return whether each number that a graph declares of its inputs, outputs and inner values is one of these."""
        if graph.value_info or _inputs(graph) != self.inputs:
            return False
        return all(map(self.includes, graph.output))

    def includes(self, output: onnx.ValueInfoProto) -> bool:
        """Return whether inference found the rank and each number that an output declares."""
        declared, inferred_dims = dims_of(output), self.dims.get(output.name)
        if declared is None or inferred_dims is None or len(inferred_dims) != len(declared):
            return declared is None
        return all(
            own == dim for own, dim in zip(declared, inferred_dims, strict=True) if isinstance(own, int)
        )


def _inputs(graph: onnx.GraphProto) -> tuple[bytes, ...]:
    return tuple(value.SerializeToString(deterministic=True) for value in fed_inputs(graph))


def forget_symbols(proto: onnx.ModelProto) -> int:
    """Leave the symbolic dims of inner values open, as they follow from the inputs; return how many there were.

    tract treats the symbol of an inner value as a separate length, so that the 1 that a caller gives does not fit it.
    """
    count = 0
    for located in bodies(proto):
        for value in located.body.value_info:
            for dim in value.type.tensor_type.shape.dim:
                count += bool(dim.dim_param)
                dim.ClearField("dim_param")
    return count


def drop_value_info(proto: onnx.ModelProto) -> int:
    """Remove the declared shapes of inner values and of sub-graphs' inputs and outputs; return how many there were.

    This includes the values of local functions: ONNX Runtime takes their shapes for the shapes that a call computes.

    Two kinds of shapes stay: those of scalars, and those of a Loop's iteration number and condition. No size of a model's
    inputs changes them. Without the shapes of scalars ONNX Runtime 1.31 fails: "Loop subgraph input 0 has
    unknown shape" (LoopImpl::Initialize in onnxruntime/core/providers/cpu/controlflow/loop.cc).
    """
    whole: list[Body] = [proto.graph, *proto.functions]
    return sum(map(_drop_value_info, whole))


def _drop_value_info(body: Body) -> int:
    count = len(body.value_info)
    body.ClearField("value_info")
    for _, node, _, _, inner in directly_inside(body):
        count += _drop_value_info(inner)
        # The counter and the condition of a Loop have fixed shapes.
        fixed = node.op_type == "Loop" and is_onnx(node.domain)
        for value in (*inner.input[2 if fixed else 0 :], *inner.output[1 if fixed else 0 :]):
            if value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.shape.dim:
                value.type.tensor_type.ClearField("shape")
                count += 1
    return count


def inferred_outputs(
    proto: onnx.ModelProto, sizes: Mapping[str, int] | None = None
) -> dict[str, Dims | None]:
    """Return the dims of each output, inferred from the inputs alone: an int, a symbol, or None for unknown.

    `sizes` are numbers for symbols of the inputs. In place of the dims there is None if the rank is unknown. Raises
    CannotMigrate, code `not-inferred`, with onnx's message, if its inference fails.
    """
    return {value.name: dims_of(value) for value in inferred_graph(proto, sizes).output}


def inferred_graph(proto: onnx.ModelProto, sizes: Mapping[str, int] | None = None) -> onnx.GraphProto:
    """Return a copy of the main graph with the types that follow from the inputs alone, as for `inferred_outputs`."""
    copy = skeleton(proto)
    # The declared shapes may be wrong or of one size only.
    drop_value_info(copy)
    for value in copy.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if sizes and dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    forget_output_shapes(copy.graph)
    try:
        return infer_shapes(copy).graph
    except InferenceError as error:
        raise CannotMigrate(
            f"onnx cannot infer shapes from the model's inputs: {error}", code="not-inferred"
        ) from error


def forget_output_shapes(graph: onnx.GraphProto) -> None:
    """Remove the declared shapes of a graph's outputs, in place, except those of initializers.

    If an initializer is an output too, inference uses the output's type: without a shape, a Slice has default axes.
    """
    stored = {tensor.name: tensor.dims for tensor in graph.initializer}
    for value in graph.output:
        if value.name in stored:
            set_dims(value, tuple(stored[value.name]))
        elif value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")


def dims_of(value: onnx.ValueInfoProto) -> Dims | None:
    """Return the declared dims of a tensor; None if no shape is declared or the value is no tensor."""
    if value.type.WhichOneof("value") != "tensor_type" or not value.type.tensor_type.HasField("shape"):
        return None
    dims: list[int | str | None] = []
    for dim in value.type.tensor_type.shape.dim:
        if dim.HasField("dim_value"):
            dims.append(dim.dim_value)
        else:
            # onnx names dims that it cannot infer unk__0, unk__1, … (SymbolTable in onnx/defs/shape_inference.h).
            is_named = dim.dim_param and not dim.dim_param.startswith("unk__")
            dims.append(dim.dim_param if is_named else None)
    return tuple(dims)


def contradict(declared: Dims | None, found: Dims | None) -> bool:
    """Return whether a shape cannot be another one, as far as both are known: by its rank, or by a number."""
    if declared is None or found is None:
        return False
    if len(declared) != len(found):
        return True
    pairs = zip(declared, found, strict=True)
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def set_dims(value: onnx.ValueInfoProto, dims: Dims) -> None:
    """Declare the dims of a tensor, in place; the denotations of axes are kept, up to the new rank."""
    shape = value.type.tensor_type.shape
    # A scalar has a shape without dims.
    shape.SetInParent()
    while len(shape.dim) > len(dims):
        del shape.dim[-1]
    while len(shape.dim) < len(dims):
        shape.dim.add()
    for dim, size in zip(shape.dim, dims, strict=True):
        if isinstance(size, int):
            dim.dim_value = size
        elif size:
            dim.dim_param = size
        else:
            # An open dim without a name has no value.
            dim.ClearField("value")


def dims_text(dims: Dims | None) -> str:
    """Return dims as text, as in "[N, 3, ?]"; "no shape" for None."""
    return "no shape" if dims is None else f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
