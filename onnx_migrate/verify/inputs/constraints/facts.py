"""Facts about a model's values before it runs: types, shapes at the chosen input shapes, and small constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.facts.shape_arithmetic import LARGEST, attributes_of, compute
from onnx_migrate.model.graphs import initializer_types, nested_bodies, nested_nodes
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["Argument", "Facts", "Shape", "with_input_shapes"]

Shape = tuple[int | None, ...]
"""The lengths of a value's axes, None if one is unknown."""


_CUTOFF = 1 << 24
"""Most elements of a declared output whose shape counts; shapes of larger outputs are ignored."""


class Facts:
    """Facts about the values of a model's main graph and its sub-graphs, whose names are unique among them.

    `shapes` are those that the graph inputs will have; without them the declared ones hold. Shape inference runs once a caller
    needs a computed value. If it fails, fewer facts are known.
    """

    def __init__(self, model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]] | None = None) -> None:
        self._model = model
        self._given = dict(shapes or {})
        self._types: dict[str, int] = {}
        self._shapes: dict[str, Shape] = {}
        self._constants: dict[str, TensorProto] = {}
        for graph in _graphs(model):
            for name, element, dims in initializer_types(graph):
                self._types[name], self._shapes[name] = element, dims
            for tensor in graph.initializer:
                self._add_constant(tensor.name, tensor)
            for value in graph.input:
                self._add_type(value)
        for node in nested_nodes(model.graph.node):
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name.startswith("value"):
                self._add_constant_node(node)
        # The shapes of the run count more than the declared ones.
        self._shapes.update(self._given)
        self._values: dict[str, Array] | None = None
        self._inferred = False

    def element_type(self, name: str) -> int:
        """Return the element type of a value, 0 if it is unknown."""
        if name not in self._types:
            self._infer()
        return self._types.get(name, 0)

    def shape(self, name: str) -> Shape | None:
        """Return the shape of a value, None if not even its rank is known."""
        if name not in self._shapes:
            self._infer()
        return self._shapes.get(name)

    def length(self, name: str, axis: int) -> int | None:
        """Return the length of an axis of a value, None if it is unknown."""
        dims = self.shape(name)
        return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None

    def static_shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a value if every axis is known."""
        dims = self.shape(name)
        if dims is None:
            return None
        known_sizes = tuple(size for size in dims if size is not None)
        return known_sizes if len(known_sizes) == len(dims) else None

    def value(self, name: str) -> Array | None:
        """Return a value of at most 1,024 elements that follows from constants and shapes, else None."""
        # A constant counts even if shapes are not inferred yet.
        constant = self._constant(name)
        if constant is not None:
            return constant
        if name not in self._shapes:
            # Inference is only needed for a value without a known shape.
            self._infer()
        if self._values is None:
            self._values = {}
            for node in nested_nodes(self._model.graph.node):
                self._evaluate(node, self._values)
        return self._values.get(name)

    def _evaluate(self, node: NodeProto, values: dict[str, Array]) -> None:
        if len(node.output) != 1 or any(attribute.ref_attr_name for attribute in node.attribute):
            return
        if node.op_type == "Shape":
            dims = self.static_shape(node.input[0])
            if dims is not None:
                at = {a.name: a.i for a in node.attribute}
                values[node.output[0]] = np.array(dims[slice(at.get("start", 0), at.get("end"))], np.int64)
            return
        inputs = [values.get(name, self._constant(name)) if name else None for name in node.input]
        # An omitted input needs no value.
        if not inputs or any(part is None and name for part, name in zip(inputs, node.input, strict=True)):
            return
        result = compute(node.op_type, attributes_of(node), inputs)
        if result is not None:
            values[node.output[0]] = result

    def _constant(self, name: str) -> Array | None:
        tensor = self._constants.get(name)
        return numpy_helper.to_array(tensor) if tensor is not None else None

    def _add_constant_node(self, node: NodeProto) -> None:
        attribute, name = node.attribute[0], node.output[0]
        if attribute.name == "value":
            self._add_constant(name, attribute.t)
        elif attribute.name in ("value_int", "value_ints", "value_float", "value_floats"):
            value = np.array(
                helper.get_attribute_value(attribute), np.int64 if "int" in attribute.name else np.float32
            )
            self._add_constant(name, numpy_helper.from_array(value))

    def _add_constant(self, name: str, tensor: TensorProto) -> None:
        self._types[name], self._shapes[name] = tensor.data_type, tuple(tensor.dims)
        if prod(map(float, tensor.dims)) <= LARGEST and tensor.data_location != TensorProto.EXTERNAL:
            self._constants[name] = tensor

    def _add_type(self, value: onnx.ValueInfoProto) -> None:
        kind = value.type.tensor_type
        if kind.elem_type:
            self._types.setdefault(value.name, kind.elem_type)
        if kind.HasField("shape"):
            dims = tuple(
                d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in kind.shape.dim
            )
            self._shapes.setdefault(value.name, dims)

    def _infer(self) -> None:
        if self._inferred:
            return
        self._inferred = True
        model = with_input_shapes(skeleton(self._model), self._given)
        with suppress(InferenceError):  # then only what is declared is known
            model = infer_shapes(model)
        for graph in _graphs(model):
            for value in (*graph.value_info, *graph.output):
                self._add_type(value)


def _graphs(model: onnx.ModelProto) -> list[GraphProto]:
    return [body for _, body in nested_bodies(model.graph) if isinstance(body, GraphProto)]


def with_input_shapes(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """Give those of a model's inputs that are tensors these shapes, in place; return the model."""
    for value in model.graph.input:
        if value.name in shapes and value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.shape.Clear()
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    return model


@dataclass(frozen=True)
class Argument:
    """An input of a node, at a position, with the known facts about the node's other inputs."""

    node: NodeProto
    index: int
    facts: Facts

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        return next((helper.get_attribute_value(a) for a in self.node.attribute if a.name == name), default)

    def shape(self, position: int = 0) -> tuple[int, ...] | None:
        """Return the shape of the input at a position, if every axis is known."""
        return self.facts.static_shape(self.node.input[position])

    def rank(self, position: int = 0) -> int:
        """Return how many axes the input at a position has, 0 if that is unknown."""
        return len(self.facts.shape(self.node.input[position]) or ())

    def length(self, position: int, axis: int) -> int | None:
        """Return the length of an axis of the input at a position, None if it is unknown or left out."""
        names = self.node.input[position : position + 1]
        return self.facts.length(names[0], axis) if names and names[0] else None

    @property
    def count(self) -> int | None:
        """The number of elements of this input, if it is known."""
        shape = self.shape(self.index)
        return prod(shape) if shape is not None else None

    @property
    def declared(self) -> tuple[int, ...] | None:
        """The shape of the node's first output, which shows the intended arguments of the node."""
        shape = self.facts.static_shape(self.node.output[0]) if self.node.output else None
        return shape if shape is not None and prod(shape) <= _CUTOFF else None
