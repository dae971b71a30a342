"""The numbers that each value of a model can have, by interval arithmetic in one pass over the nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.facts.value_types import TypeTable, ValueType
from onnx_migrate.model.weights import Weights

from .rules import RULES, Interval, hull, widened

__all__ = ["Ranges", "fits", "ranges_of"]

INT32: Interval = (-(2**31), 2**31 - 1)
INT64: Interval = (-(2**63), 2**63 - 1)

_LIMITS: dict[int, Interval] = {
    TensorProto.BOOL: (0, 1), TensorProto.INT8: (-128, 127), TensorProto.UINT8: (0, 255),
    TensorProto.INT16: (-(2**15), 2**15 - 1), TensorProto.UINT16: (0, 2**16 - 1), TensorProto.INT32: INT32,
    TensorProto.UINT32: (0, 2**32 - 1), TensorProto.INT64: INT64, TensorProto.UINT64: (0, 2**64 - 1),
}  # fmt: skip
"""What an element type holds. A result beyond it wraps around, so that any number of the type may come out."""

_FLOATS: dict[int, float] = {TensorProto.FLOAT: 3e38, TensorProto.DOUBLE: 1e300, TensorProto.FLOAT16: 65000.0}
"""Numbers up to which a type of floats is not infinite."""

_INDICES = {"Gather": 0, "GatherElements": 0, "Scatter": 0, "ScatterElements": 0}
"""Operators that fail if input 1 is no index into the axis of input 0 that the attribute `axis` selects; value: default `axis`.
ONNX Runtime's kernels check each index ("indices element out of data bounds")."""

_MODULAR: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "MatMul", "Mul", "Sub"), (0, 1)),
    **dict.fromkeys(("BitwiseNot", "CumSum", "Gather", "Neg", "ReduceSum", "Slice"), (0,)),
    **dict.fromkeys(
        ("Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Tile", "Transpose", "Unsqueeze"), (0,)
    ),
    "Where": (1, 2),
}
"""Operators whose low 32 bits depend only on the low 32 bits of these inputs. If the final number fits int32, a wrap-around
of an intermediate number does not change it."""

_WHOLE = frozenset(
    {"Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}
)
"""Operators whose output has all elements of their inputs, unchanged."""


def fits(known: Interval) -> bool:
    """Return whether int32 holds all numbers of a range."""
    return known[0] >= INT32[0] and known[1] <= INT32[1]


@dataclass
class Ranges:
    """The range of each value; a float value has one only if it is known to be finite.

    `assumed` are the values whose range rests on being indices within an axis, or else the original fails.
    """

    types: TypeTable
    weights: Weights
    ports: bool
    """Whether the int64 inputs of the model will be of int32."""
    found: dict[Value, Interval] = field(default_factory=dict)
    indices: dict[Value, Interval] = field(default_factory=dict)
    assumed: list[Value] = field(default_factory=list)
    wrapping: set[Value] = field(default_factory=set)
    """Only the low 32 bits of these values count, since all values computed from them fit int32."""

    def of(self, value: Value | None) -> Interval | None:
        """Return the range of a value, None for one that may be anything."""
        if value is None:
            return None
        found_range = self.found.get(value)
        return found_range if found_range is not None else _LIMITS.get(value.dtype or 0)

    def shape(self, value: Value | None) -> tuple[int | None, ...] | None:
        """Return the shape of a value."""
        return None if value is None else self._type(value).shape

    def _type(self, value: Value) -> ValueType:
        return self.types.lookup(None, value.frame.key, value.name)

    def elements(self, value: Value | None) -> int | None:
        """Return how many elements a value has."""
        return None if value is None else self._type(value).size

    def fit(self, value: Value) -> bool:
        """Return whether int32 holds all numbers of a value of integers."""
        return fits(self.of(value) or (0, 0))

    def in_int32(self, value: Value) -> bool:
        """Return whether int32 holds a value, or the bits of it that count."""
        return value in self.wrapping or self.fit(value)

    def reads_low_bits(self, step: Step, place: int) -> bool:
        """Return whether only the low 32 bits of a node's input count, since int32 holds all its outputs."""
        if step.domain or place not in _MODULAR.get(step.node.op_type, ()):
            return False
        return all(map(self.in_int32, step.made))

    def enter(self, value: Value, known: Interval | None) -> None:
        """Enter the range of a value. A range beyond its type becomes the type's range; an index lies within its axis."""
        limits = _LIMITS.get(value.dtype or 0)
        if known is not None and limits is None:
            known = widened(known, _FLOATS.get(value.dtype or 0, 0.0))
        elif known is None or (limits is not None and (known[0] < limits[0] or known[1] > limits[1])):
            known = limits
        index = self.indices.get(value)
        # An index that fits anyway needs no assumption.
        if index is not None and known is not None and not fits(known):
            known = (max(known[0], index[0]), min(known[1], index[1]))
            self.assumed.append(value)
        if known is not None:
            self.found[value] = known


def ranges_of(graph: Frame, types: TypeTable, weights: Weights, *, ports: bool) -> Ranges:
    """Return the ranges of the values of a model, from its main graph."""
    ranges = Ranges(types, weights, ports)
    _find_indices(graph, ranges)
    _frame(graph, ranges)
    for step in reversed(graph.steps):
        _find_wrapping(step.outputs, graph, ranges)
    return ranges


def _find_wrapping(values: Iterable[Value | None], graph: Frame, ranges: Ranges) -> None:
    """Enter those of the values whose low 32 bits alone count. The caller has finished all their readers."""
    for value in values:
        if value is None or value.is_output or not value.readers or value.dtype != TensorProto.INT64:
            continue
        # A value that fits needs no wrapping.
        if not ranges.fit(value) and all(
            reader.frame is graph and ranges.reads_low_bits(reader, input_index)
            for reader, input_index in value.readers
        ):
            ranges.wrapping.add(value)


def _frame(frame: Frame, ranges: Ranges) -> None:
    for value in frame.values.values():
        if value.maker is not None:
            continue
        is_port = ranges.ports and not frame.key and value.tensor is None and value.dtype == TensorProto.INT64
        ranges.enter(value, INT32 if is_port else _stored(value, ranges))
    # The bodies come first, because the outputs of a node with bodies follow from theirs.
    for step in frame.steps:
        for _, inner in step.inner:
            _frame(inner, ranges)
        for output, output_range in zip(step.outputs, _outputs(step, ranges), strict=False):
            if output is not None:
                ranges.enter(output, output_range)


def _outputs(step: Step, ranges: Ranges) -> Iterable[Interval | None]:
    if step.is_a("Constant"):
        return [_stored(step.outputs[0], ranges)]
    if step.is_a("If"):
        branches = [[inner.find(out.name) for out in inner.body.output] for _, inner in step.inner]
        return [hull(map(ranges.of, values)) for values in zip(*branches, strict=True)]
    rule = RULES.get(step.node.op_type) if not step.domain else None
    if rule is None:
        return [None] * len(step.outputs)
    return rule(step, ranges, attributes_of(step.node))


def _stored(value: Value | None, ranges: Ranges) -> Interval | None:
    """Return the smallest and the largest number of a constant; None for any other value, and a sparse or large one."""
    tensor = None if value is None else value.tensor
    if (
        value is None
        or tensor is None
        or any(sparse.values.name == value.name for sparse in value.frame.body.sparse_initializer)
    ):
        return None
    if tensor.data_type not in _LIMITS and tensor.data_type not in _FLOATS:
        return None
    # Reading many floats takes longer than their range is worth.
    if tensor.data_type in _FLOATS and math.prod(tensor.dims) > _FLOATS_READ:
        return None
    array = ranges.weights.array(tensor)
    # A constant without elements cannot overflow, so any range is right.
    if not array.size:
        return (0, 0)
    low, high = array.min().item(), array.max().item()
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None


_FLOATS_READ = 1024
"""Constants of floats are read up to this many elements: few integers are computed with larger ones."""


def _find_indices(graph: Frame, ranges: Ranges) -> None:
    """Enter the values that nodes of the main graph read as indices, and the values these are moved or counted from."""
    # Readers come first, so a value is known to be an index before the node that computes it.
    for step in reversed(graph.steps):
        axis = _INDICES.get(step.node.op_type) if not step.domain else None
        if axis is not None and len(step.inputs) > 1 and step.inputs[1] is not None:
            shape, axis = ranges.shape(step.inputs[0]), attributes_of(step.node).get("axis", axis)
            # An unknown axis gives no range.
            size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
            if size is not None and ranges.elements(step.inputs[1]):
                _narrow(step.inputs[1], (-size, size - 1), ranges)
            continue
        index_range = (
            ranges.indices.get(step.outputs[0]) if step.outputs and step.outputs[0] is not None else None
        )
        if index_range is None or step.domain or any(value.frame is not graph for value in step.read):
            continue
        # These nodes move elements, so the range holds before them as well.
        if step.node.op_type in _WHOLE:
            for moved in step.inputs if step.is_a("Concat") else step.inputs[:1]:
                _narrow(moved, index_range, ranges)
        elif (
            step.is_a("Pad")
            and (pads := _stored(step.inputs[1], ranges) if len(step.inputs) > 1 else None) is not None
        ):
            _narrow(step.inputs[0] if pads[0] >= 0 else None, index_range, ranges)
        elif step.is_a("Add", "Sub"):
            _before_sum(step, index_range, ranges)


def _before_sum(step: Step, known: Interval, ranges: Ranges) -> None:
    """Narrow the operand of a sum with a constant."""
    first, second = step.inputs
    orders = [(first, second), (second, first)] if step.is_a("Add") else [(first, second)]
    for value, other in orders:
        constant = _stored(other, ranges)
        if value is not None and value.tensor is None and constant is not None:
            low, high = constant if step.is_a("Add") else (-constant[1], -constant[0])
            _narrow(value, (known[0] - high, known[1] - low), ranges)


def _narrow(value: Value | None, known: Interval, ranges: Ranges) -> None:
    if value is None or value.tensor is not None or value.dtype != TensorProto.INT64:
        return
    before = ranges.indices.get(value, known)
    ranges.indices[value] = (max(known[0], before[0]), min(known[1], before[1]))
