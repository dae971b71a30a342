"""Facts about the values of one body that onnx's inference of the model does not find, from constants and known dims.

`ValueFacts` computes the elements of values that it can know. From them it derives shapes, for example that
of a Reshape to a computed shape. A rewrite enters each node that it writes at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.facts.foreign_types import foreign_types
from onnx_migrate.facts.kept_dims import kept_dims, merged
from onnx_migrate.facts.node_inference import is_unknown, record_outputs
from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shape_arithmetic import Array, PartialArray, attributes_of, propagate
from onnx_migrate.facts.value_types import MOST_AXES, ValueType
from onnx_migrate.model.graphs import Body, producers
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Producers", "ValueFacts"]

_FOLLOWED = frozenset(
    {
        "Add", "Cast", "Ceil", "Concat", "Div", "Floor", "Gather", "Identity", "Less", "Max", "Min", "Mul", "ReduceMin",
        "Slice", "Squeeze", "Sub", "Unsqueeze",
    }
)  # fmt: skip
"""The operators whose outputs are computed: exporters write them between Shape and the scales or sizes of a Resize.

A value behind any other operator is not known; the runtime computes it.
"""

_LARGEST_RANK, _LARGEST_DIM = 2, 64
"""Of a shape, scales or sizes. Larger values are not read."""


_SHAPED = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}
"""Operators with the index of the input that holds the shape of their output."""

_DEEP = 50
"""Nodes in a chain that are followed by recursion, which Python limits; longer ones are put in order first."""


class Producers:
    """Maps values to the nodes that produce them, in a body and those around it, as the nodes were at the first query."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[str, onnx.NodeProto]] = {}
        self._readers: dict[int, dict[str, list[onnx.NodeProto]]] = {}
        self._bodies: list[Body] = []
        """The bodies of the tables, which are kept so that none of a later scope gets the id of one of them."""

    def readers(self, scope: Scope, name: str) -> list[onnx.NodeProto]:
        """Return the nodes of a body that read `name` at the time of the first query; nodes of sub-graphs do not count."""
        table = self._readers.get(id(scope.body))
        if table is None:
            self._bodies.append(scope.body)
            table = self._readers[id(scope.body)] = {}
            for node in scope.body.node:
                for value in set(node.input) - {""}:
                    table.setdefault(value, []).append(node)
        return table.get(name, [])

    def find(self, scope: Scope, name: str) -> onnx.NodeProto | None:
        """Return the node that produces `name`, None for inputs and initializers."""
        at: Scope | None = scope
        while at is not None:
            table = self.of(at)
            if name in table:
                return table[name]
            at = at.parent
        return None

    def is_made_in(self, scope: Scope, name: str) -> bool:
        """Return whether a node of this very body produced a value at the first query."""
        return name in self.of(scope)

    def of(self, scope: Scope) -> dict[str, onnx.NodeProto]:
        """Return the nodes of this very body by the values that they produced at the first query."""
        table = self._tables.get(id(scope.body))
        if table is None:
            self._bodies.append(scope.body)
            table = self._tables[id(scope.body)] = producers(scope.body)
        return table


@dataclass(eq=False, repr=False)
class ValueFacts:
    """The facts about the values of one body; it computes each value once, in the arithmetic of the runtimes.

    `followed` are the operators to compute, and `outer` knows the values around the body.
    """

    scope: Scope
    producers: Producers
    _: KW_ONLY
    followed: frozenset[str] = _FOLLOWED
    largest: int | None = None
    """Elements of the largest value that is read; by default values that are shapes, scales or sizes are."""
    all_dims: bool = False
    """Whether to refine a shape with an unknown dim too, which is useful if the model's inputs have fixed dims."""
    outer: ValueFacts | None = None
    _found: dict[str, PartialArray | None] = field(default_factory=dict, init=False)
    _depth: int = field(default=0, init=False)
    _found_all: bool = field(default=False, init=False)
    _written: dict[str, onnx.NodeProto] = field(default_factory=dict, init=False)
    _elements: dict[str, tuple[str, ...]] = field(default_factory=dict, init=False)

    def find_all(
        self, opset: int | None = None, learn: Callable[[onnx.NodeProto], None] | None = None
    ) -> None:
        """Compute the values of all nodes of the body, so that they stay known while a rewrite changes the nodes.

        With `opset`, a version of ai.onnx, it also enters the shapes that follow from the values into the types. Then
        `learn` enters the shapes of nodes of other domains.
        """
        for node in self.scope.body.node:
            if opset:
                if learn is not None and not is_onnx(node.domain):
                    learn(node)
                self.refine(node, opset)
            if len(node.output) == 1 and (node.op_type == "Shape" or node.op_type in self.followed):
                self.partial(node.output[0])
        self._found_all = True

    def add(self, node: onnx.NodeProto) -> None:
        """Compute the value of a node that a rewrite has written."""
        self._written.update((name, node) for name in node.output if name)
        if len(node.output) == 1 and (node.op_type == "Shape" or node.op_type in self.followed):
            partial_value = self._computed(node)
            if partial_value is not None:
                self._found[node.output[0]] = partial_value

    def refine(self, node: onnx.NodeProto, opset: int) -> None:
        """Enter types and shapes of a node's outputs that are not known, if they follow from its inputs.

        `opset` is the version of ai.onnx whose form the node has. For nodes of other domains `foreign_types` gives the
        types, because onnx's inference of the model skips them or knows no sizes.
        """
        if not is_onnx(node.domain):
            self._refine_foreign(node)
            return
        if not any(
            name and is_unknown(self.scope.value_type(name), dims=self.all_dims) for name in node.output
        ):
            return
        at = _SHAPED.get(node.op_type)
        # onnx infers the shape itself from a constant.
        if at is not None and len(node.input) > at and not self._is_given(node.input[at]):
            shape = self._dims(node, node.input[at])
            if shape is not None:
                dtype = self.scope.value_type(node.output[0]).dtype
                # Operators with the shape as second input keep the type of the first.
                if dtype is None and at:
                    dtype = self.scope.value_type(node.input[0]).dtype
                self.scope.record_type(node.output[0], ValueType(dtype, shape))
                self._complete(node, opset)
                return
        if record_outputs(self.scope, node, opset, dims=self.all_dims, computed=self.value):
            self._complete(node, opset)

    def _refine_foreign(self, node: onnx.NodeProto) -> None:
        inputs = [self.scope.value_type(name) if name else ValueType() for name in node.input]
        for name, inferred_type in zip(node.output, foreign_types(node, inputs), strict=True):
            recorded_type = self.scope.value_type(name)
            if not name or inferred_type is None or not is_unknown(recorded_type, dims=True):
                continue
            # A rule of the package and the model itself may know different dims.
            shape = merged(inferred_type.shape, recorded_type.shape)
            dtype = inferred_type.dtype or recorded_type.dtype
            self.scope.record_type(
                name, replace(inferred_type, dtype=dtype, shape=shape, symbols=recorded_type.symbols)
            )

    def _complete(self, node: onnx.NodeProto, opset: int) -> None:
        """Enter the dims that onnx's inference does not find: those of axes that a node does not name."""
        open_outputs = [
            name
            for name in node.output
            if name and is_unknown(self.scope.value_type(name), dims=self.all_dims)
        ]
        if not open_outputs:
            return
        shapes = [self.scope.value_type(name).shape if name else None for name in node.input]
        # onnx leaves a dim open if it depends on an axis that the node does not name.
        dims = kept_dims(node, opset, shapes, self.partial)
        for name in open_outputs if dims is not None else ():
            recorded_type = self.scope.value_type(name)
            dtype = recorded_type.dtype
            # The operators with rules in kept_dims pass the type of their first input on.
            if dtype is None and name == node.output[0]:
                dtype = self.scope.value_type(node.input[0]).dtype
            shape = merged(recorded_type.shape, dims)
            if shape != recorded_type.shape or dtype != recorded_type.dtype:
                self.scope.record_type(name, replace(recorded_type, dtype=dtype, shape=shape))

    def _is_given(self, name: str) -> bool:
        """Return whether onnx's inference of a node gets a shape, so that it finds the lengths that -1 and 0 stand for."""
        return self.all_dims and self.scope.constant_source(name) is not None

    def _dims(self, node: onnx.NodeProto, name: str) -> tuple[int | None, ...] | None:
        """Return the dims that a shape gives, None for each unknown dim; None if not even the rank is known."""
        shape_value = self.partial(name)
        if shape_value is not None and shape_value.values.ndim == 1:
            dims = [
                int(size) if is_known and (size > 0 or node.op_type == "ConstantOfShape") else None
                for size, is_known in zip(shape_value.values, shape_value.known, strict=True)
            ]
        else:
            length = self.scope.value_type(name).shape
            if length is None or len(length) != 1 or length[0] is None or length[0] > MOST_AXES:
                return None
            dims = [None] * length[0]
        if node.op_type == "Expand":
            own = self.scope.value_type(node.input[0]).shape
            if own is None:
                return None
            # A dim that is larger than 1 is the one of the result; a dim that is 1 or open depends on the other operand.
            longer = max(len(own), len(dims))
            input_dims, other = [1] * (longer - len(own)) + list(own), [1] * (longer - len(dims)) + list(dims)
            pairs = zip(input_dims, other, strict=True)
            return tuple(
                a if a and a > 1 else b if b and b > 1 else 1 if a == b == 1 else None for a, b in pairs
            )
        return tuple(dims)

    def producer(self, name: str) -> onnx.NodeProto | None:
        """Return the node that produces a value, or produced it before a rewrite moved that to another name."""
        at: ValueFacts | None = self
        while at is not None:
            if name in at._written:
                return at._written[name]
            at = at.outer
        return self.producers.find(self.scope, name)

    def elements(self, name: str) -> tuple[str, ...] | None:
        """Return the values that a sequence or optional holds if a rewrite has recorded them."""
        if name not in self._elements and self.outer is not None:
            return self.outer.elements(name)
        return self._elements.get(name)

    def record_elements(self, name: str, elements: tuple[str, ...]) -> None:
        """Record the values that a sequence or optional holds, which a rewrite takes out of the body."""
        self._elements[name] = elements

    def value(self, name: str) -> Array | None:
        """Return a value if all its elements are known, else None."""
        partial_value = self.partial(name)
        return None if partial_value is None else partial_value.complete

    def partial(self, name: str) -> PartialArray | None:
        """Return the known elements of a value; None if not even its shape and element type are known."""
        if name not in self._found:
            if self.outer is not None and name in self.outer:
                return self.outer.partial(name)
            if self._depth >= _DEEP:
                for earlier in self._behind(name):
                    self.partial(earlier)
            self._found[name] = None  # ends the recursion on a cycle
            self._depth += 1
            try:
                self._found[name] = self._find(name)
            finally:
                self._depth -= 1
        return self._found[name]

    def _behind(self, name: str) -> list[str]:
        """Return the values of this body that a value is computed from and that are not known yet, each after its own."""
        order: list[str] = []
        seen, waiting = {name}, [(name, False)]
        while waiting:
            value, visited = waiting.pop()
            if visited:
                order.append(value)
                # The value comes up a second time after the values that it reads, so it then stands behind
                # them.
                continue
            waiting.append((value, True))
            # After a complete pass, a value that is still missing stays unknown.
            node = None if self._found_all else self.producers.find(self.scope, value)
            if node is not None and node.op_type in self.followed:
                new = [
                    source
                    for source in dict.fromkeys(node.input)
                    if source and source not in seen and source not in self
                ]
                seen.update(new)
                waiting += [(source, False) for source in new]
        return order[:-1]

    def __contains__(self, name: str) -> bool:
        return name in self._found or (self.outer is not None and name in self.outer)

    def _find(self, name: str) -> PartialArray | None:
        shape = self.scope.value_type(name).shape
        if shape is not None and self._is_large(shape):
            return None
        constant = self.scope.constant(name)
        if constant is not None:
            return PartialArray.of(constant)
        node = None if self._found_all else self.producers.find(self.scope, name)
        return self._computed(node) if node is not None else None

    def _is_large(self, shape: tuple[int | None, ...]) -> bool:
        if self.largest is not None:
            return prod(size for size in shape if size is not None) > self.largest
        return len(shape) > _LARGEST_RANK or any(size is not None and size > _LARGEST_DIM for size in shape)

    def _computed(self, node: onnx.NodeProto) -> PartialArray | None:
        if not is_onnx(node.domain) or len(node.output) != 1:
            return None
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return None
        attributes = attributes_of(node)
        if node.op_type == "Shape":
            return self._shape(node, attributes)
        if node.op_type == "Size" and "Size" in self.followed:
            shape = self._shape(node, {})
            sizes = None if shape is None else shape.complete
            return None if sizes is None else PartialArray.of(np.array(np.prod(sizes), np.int64))
        if node.op_type not in self.followed:
            return None
        inputs = [self.partial(value) if value else None for value in node.input]
        if node.op_type == "CastLike":
            # CastLike reads only the type of its second input, so its elements may be unknown.
            inputs[1] = self._of_type(node.input[1])
        if any(part is None and value for part, value in zip(inputs, node.input, strict=True)):
            return None
        return propagate(node.op_type, attributes, inputs)

    def _of_type(self, name: str) -> PartialArray | None:
        """Return a 0 of the element type of a value; a CastLike reads only the type."""
        dtype = self.scope.value_type(name).dtype
        return (
            None if dtype is None else PartialArray.of(np.zeros((), helper.tensor_dtype_to_np_dtype(dtype)))
        )

    def _shape(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> PartialArray | None:
        shape = self.scope.value_type(node.input[0]).shape if node.input else None
        if shape is None:
            return None
        start, end = attributes.get("start", 0), attributes.get("end")
        if not isinstance(start, int) or not (end is None or isinstance(end, int)):
            return None  # the check of the node's schema refuses it later
        shape = shape[start:end]
        values = np.array([size or 0 for size in shape], np.int64)
        return PartialArray(values, np.array([size is not None for size in shape], bool))
