"""The values that original and result both have under the same name; the module chooses those to compare, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.facts.onnx_inference import without_fragile_ops
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.equivalence.upstream_values import values_upstream
from onnx_migrate.verify.inputs.constraints.facts import with_input_shapes
from onnx_migrate.verify.model_traits import dependents, is_random

__all__ = [
    "Shapes",
    "ValueTypes",
    "chunks",
    "common_cuts",
    "keeps_all_names",
    "masked_values",
    "shapes_of",
    "spread",
    "values_to_record",
]

Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of inputs by name."""

_MEMORY = 1 << 28
"""How many bytes of inner values are recorded with the outputs, by the sizes that inference finds."""
_UNKNOWN = 1 << 24
"""Bytes assumed of a value of unknown shape."""

_GOLDEN = (5**0.5 - 1) / 2
"""Its multiples, modulo 1, fill an interval evenly."""

_TRANSPARENT = frozenset({
    "Add", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "DepthToSpace", "Div", "Exp", "Expand",
    "Flatten", "Gemm", "Identity", "LayerNormalization", "MatMul", "Mul", "Neg", "Reshape", "SpaceToDepth",
    "Squeeze", "Sub", "Sum", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose output depends on every element of their inputs."""

_CUT = frozenset(
    {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.UINT8}
)
"""Element types of the values at which a model is cut: floats, and bytes, which a quantised model computes with."""


class ValueTypes:
    """Facts that inference finds about a model's values for inputs of these shapes: bytes, discrete values, float16 values."""

    def __init__(self, model: onnx.ModelProto, shapes: Shapes) -> None:
        self.sizes: dict[str, int] = {}
        self.discrete: set[str] = set()
        self.halves: set[str] = set()
        sized = onnx.ModelProto()
        sized.CopyFrom(model)
        try:
            inferable = without_fragile_ops(with_input_shapes(sized, shapes))
            values = list(onnx.shape_inference.infer_shapes(inferable).graph.value_info)
        except Exception:
            # The native code raises many kinds. A model may run all the same, and nothing is compared wrongly.
            values = []
        for value in values:
            dims = value.type.tensor_type.shape.dim
            # The size of a value with open dims is unknown.
            if all(dim.dim_value > 0 for dim in dims):
                size = _bytes_of(value.type.tensor_type.elem_type)
                self.sizes[value.name] = size * prod(dim.dim_value for dim in dims)
            if value.type.tensor_type.elem_type == TensorProto.FLOAT16:
                self.halves.add(value.name)
            if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type not in _CUT:
                self.discrete.add(value.name)

    def size(self, name: str) -> int:
        """Return the bytes of a value, or an assumed number if they are unknown."""
        return self.sizes.get(name, _UNKNOWN)


def shapes_of(feed: Mapping[str, Any]) -> Shapes:
    """Return the shapes of the tensors of a feed."""
    return {name: value.shape for name, value in feed.items() if isinstance(value, np.ndarray)}


def _bytes_of(element: int) -> int:
    """Return the size of an element in numpy; eight bytes of a text, and of a type that is not known."""
    if element in (TensorProto.UNDEFINED, TensorProto.STRING):
        return 8
    return int(onnx.helper.tensor_dtype_to_np_dtype(element).itemsize)


def _varying(model: onnx.ModelProto) -> list[str]:
    """Return the values of the main graph that depend on an input, in the order they are computed."""
    inputs = {value.name for value in fed_inputs(model.graph)}
    reached = dependents(model, inputs) - inputs
    return [name for node in model.graph.node for name in node.output if name in reached]


def keeps_all_names(original: onnx.ModelProto, result: onnx.ModelProto) -> bool:
    """Whether `result` has each value that depends on an input under the same name, like after a change of single nodes."""
    return set(_varying(original)) <= set(_varying(result))


def common_cuts(original: onnx.ModelProto, result: onnx.ModelProto, types: ValueTypes) -> list[str]:
    """Return the values at which both models are cut: those that both have by the same name, unless they are discrete."""
    present = set(_varying(result))
    return [name for name in _varying(original) if name in present and name not in types.discrete]


def masked_values(original: onnx.ModelProto, result: onnx.ModelProto) -> list[str]:
    """Return the inner values that both models compute under the same name and that a reader may mask.

    A Relu masks a difference if its output is zero, a MaxPool in elements that are not the largest.
    """
    if is_random(original):
        return []
    inputs = {value.name for value in fed_inputs(original.graph)}
    compared = (dependents(original, inputs) - inputs) & _inner_names(original, result)
    read = (name for node in original.graph.node if node.op_type not in _TRANSPARENT for name in node.input)
    return list(dict.fromkeys(name for name in read if name in compared))


def values_to_record(original: onnx.ModelProto, result: onnx.ModelProto, shapes: Shapes) -> list[str]:
    """Return the inner values to record in the runs that compare the outputs, as many as memory allows.

    Values a few nodes upstream of the outputs come first, because the outputs may not vary. Then follow those that are compared.
    `shapes` are those of the inputs.
    """
    common = _inner_names(original, result)
    upstream = [] if is_random(original) else [name for name in values_upstream(original) if name in common]
    types = ValueTypes(original, shapes)
    # The rest of the memory is for values spread over the model.
    near = _fitting(upstream, types, _MEMORY // 4)
    memory_left = _MEMORY - sum(map(types.size, near))
    others = (name for name in spread(masked_values(original, result)) if name not in near)
    return near + _fitting(others, types, memory_left)


def _inner_names(original: onnx.ModelProto, result: onnx.ModelProto) -> set[str]:
    """Return the values that `result` computes, without the outputs, which are compared anyway."""
    computed = {name for node in result.graph.node for name in node.output}
    return computed - {output.name for output in original.graph.output}


def _fitting(names: Iterator[str] | Sequence[str], types: ValueTypes, memory: int) -> list[str]:
    """Return, in their order, the names that fit into a number of bytes: each one that fits after those before it."""
    fitting = []
    for name in names:
        size = types.size(name)
        if size <= memory:
            fitting.append(name)
            memory -= size
    return fitting


def spread(names: Sequence[str]) -> list[str]:
    """Return the names in an order in which the first ones, however many, are spread over the model."""
    return [names[index] for index in sorted(range(len(names)), key=lambda index: index * _GOLDEN % 1)]


def chunks(names: Sequence[str], types: ValueTypes, memory: int) -> list[list[str]]:
    """Divide the names, in their order, into parts with at most a number of bytes, or with a single value."""
    parts: list[list[str]] = []
    room = 0
    for name in names:
        size = types.size(name)
        # A value larger than the memory gets a part of its own.
        if not parts or size > room:
            parts.append([])
            room = memory
        parts[-1].append(name)
        room -= size
    return parts
