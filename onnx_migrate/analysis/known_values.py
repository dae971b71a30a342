"""Constant propagation: the values that follow from a model's constants and known dims, element by element.

A value may be known in part: of the shape [N, 3, 5, 7] all elements but the first are. The evaluator of
`shape_arithmetic` computes the elements; this module computes the mask of those that are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.analysis.shape_arithmetic import ELEMENTWISE, MOVEMENT, compute
from onnx_migrate.model.graphs import producers
from onnx_migrate.spec.schema import is_onnx

__all__ = ["KnownValues", "PartialArray", "Producers", "propagate"]

Array = np.ndarray[Any, Any]

_FOLLOWED = frozenset(
    {
        "Add", "Cast", "Ceil", "Concat", "Div", "Floor", "Gather", "Identity", "Less", "Max", "Min", "Mul", "ReduceMin",
        "Slice", "Squeeze", "Sub", "Unsqueeze",
    }
)  # fmt: skip
"""The operators whose outputs are computed: those that exporters write between Shape and the scales or sizes of a
Resize. A value behind any other one is not known, and stays computed at run time."""

_LARGEST_RANK, _LARGEST_DIM = 2, 64
"""Of a shape, scales or sizes. Larger values are not read."""


_DEEP = 50
"""Nodes in a chain that are followed by recursion, which Python limits; longer ones are put in order first."""


class Producers:
    """Maps values to the nodes that produce them, in a body and those around it, as the nodes were at the first query."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[str, onnx.NodeProto]] = {}
        self._readers: dict[int, dict[str, list[onnx.NodeProto]]] = {}

    def readers(self, scope: Scope, name: str) -> list[onnx.NodeProto]:
        """Return the nodes of a body that read `name`, without those of sub-graphs, as they were at the first query."""
        table = self._readers.get(id(scope.body))
        if table is None:
            table = self._readers[id(scope.body)] = {}
            for node in scope.body.node:
                for value in set(node.input) - {""}:
                    table.setdefault(value, []).append(node)
        return table.get(name, [])

    def find(self, scope: Scope, name: str) -> onnx.NodeProto | None:
        """Return the node that produces `name`, None for inputs and initializers."""
        at: Scope | None = scope
        while at is not None:
            table = self._tables.get(id(at.body))
            if table is None:
                table = self._tables[id(at.body)] = producers(at.body)
            if name in table:
                return table[name]
            at = at.parent
        return None


@dataclass(frozen=True)
class PartialArray:
    """An array of which only the elements that `known`, a boolean array of the same shape, marks have their value."""

    values: Array
    known: Array

    @classmethod
    def of(cls, array: Array) -> PartialArray:
        """Return an array of which all elements are known."""
        return cls(array, np.ones(array.shape, bool))

    @property
    def complete(self) -> Array | None:
        """The values if all elements are known, else None."""
        return self.values if bool(self.known.all()) else None


class KnownValues:
    """The values that are known in one body; each is computed once, in the arithmetic of the runtimes."""

    def __init__(
        self,
        scope: Scope,
        producers: Producers,
        *,
        followed: frozenset[str] = _FOLLOWED,
        outer: KnownValues | None = None,
    ) -> None:
        """Create an empty store; `followed` are the operators to compute, `outer` knows the values around the body."""
        self.scope = scope
        self.producers = producers
        self.followed = followed
        self.outer = outer
        self._found: dict[str, PartialArray | None] = {}
        self._depth = 0
        self._found_all = False
        self._written: dict[str, onnx.NodeProto] = {}
        self._elements: dict[str, tuple[str, ...]] = {}

    def find_all(self, visit: Callable[[onnx.NodeProto], None] | None = None) -> None:
        """Compute the values of all nodes of the body, so that they stay known while a rewrite changes the nodes.

        `visit` is called for each node when the values of the nodes before it are known.
        """
        for node in self.scope.body.node:
            if visit is not None:
                visit(node)
            if len(node.output) == 1 and (node.op_type == "Shape" or node.op_type in self.followed):
                self.partial(node.output[0])
        self._found_all = True

    def add(self, node: onnx.NodeProto) -> None:
        """Compute the value of a node that a rewrite has written."""
        self._written.update((name, node) for name in node.output if name)
        if len(node.output) == 1 and (node.op_type == "Shape" or node.op_type in self.followed):
            found = self._computed(node)
            if found is not None:
                self._found[node.output[0]] = found

    def producer(self, name: str) -> onnx.NodeProto | None:
        """Return the node that produces a value, or produced it before a rewrite moved that to another name."""
        at: KnownValues | None = self
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
        """Return a value of which all elements are known, else None."""
        found = self.partial(name)
        return None if found is None else found.complete

    def partial(self, name: str) -> PartialArray | None:
        """Return what is known of a value, None when not even its shape and element type are."""
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
                continue
            waiting.append((value, True))
            node = None if self._found_all else self.producers.find(self.scope, value)
            if node is not None and node.op_type in self.followed:
                new = [
                    item
                    for item in dict.fromkeys(node.input)
                    if item and item not in seen and item not in self
                ]
                seen.update(new)
                waiting += [(item, False) for item in new]
        return order[:-1]

    def __contains__(self, name: str) -> bool:
        return name in self._found or (self.outer is not None and name in self.outer)

    def _find(self, name: str) -> PartialArray | None:
        shape = self.scope.value_type(name).shape
        if shape is not None and (
            len(shape) > _LARGEST_RANK or any(size is not None and size > _LARGEST_DIM for size in shape)
        ):
            return None
        constant = self.scope.constant(name)
        if constant is not None:
            return PartialArray.of(constant)
        node = None if self._found_all else self.producers.find(self.scope, name)
        return self._computed(node) if node is not None else None

    def _computed(self, node: onnx.NodeProto) -> PartialArray | None:
        if not is_onnx(node.domain) or len(node.output) != 1:
            return None
        if any(attribute.ref_attr_name for attribute in node.attribute):
            return None
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        if node.op_type == "Shape":
            return self._shape(node, attributes)
        if node.op_type == "Size" and "Size" in self.followed:
            shape = self._shape(node, {})
            sizes = None if shape is None else shape.complete
            return None if sizes is None else PartialArray.of(np.array(np.prod(sizes), np.int64))
        if node.op_type not in self.followed:
            return None
        given = [self.partial(value) if value else None for value in node.input]
        if any(part is None and value for part, value in zip(given, node.input, strict=True)):
            return None
        return propagate(node.op_type, attributes, given)

    def _shape(self, node: onnx.NodeProto, attributes: dict[str, Any]) -> PartialArray | None:
        shape = self.scope.value_type(node.input[0]).shape if node.input else None
        if shape is None:
            return None
        start, end = attributes.get("start", 0), attributes.get("end")
        if not isinstance(start, int) or not (end is None or isinstance(end, int)):
            return None  # the node is refused where its schema is asked
        shape = shape[start:end]
        values = np.array([size or 0 for size in shape], np.int64)
        return PartialArray(values, np.array([size is not None for size in shape], bool))


def propagate(
    operator: str, attributes: dict[str, Any], given: list[PartialArray | None]
) -> PartialArray | None:
    """Return the first output of a node, None if nothing is known of it.

    None among `given` stands for an input that is left out. A movement operator moves the mask as it moves the
    elements, if its other inputs (indices, axes, a shape) are known completely. An element of an element-wise operator
    is known if the elements of all inputs are. All other operators need all elements.
    """
    if operator in MOVEMENT:
        count = len(given) if operator == "Concat" else 1
        moved = [part for part in given[:count] if part is not None]
        rest = [None if part is None else part.complete for part in given[count:]]
        if any(part is not None and array is None for part, array in zip(given[count:], rest, strict=True)):
            return None
        values = compute(operator, attributes, [*(part.values for part in moved), *rest])
        known = compute(operator, attributes, [*(part.known for part in moved), *rest])
    elif operator in ELEMENTWISE:
        parts = [part for part in given if part is not None]
        # An element that is not known counts as 1, by which everything can be divided.
        operands = [np.where(part.known, part.values, np.ones((), part.values.dtype)) for part in parts]
        values = compute(operator, attributes, operands)
        if values is None:
            return None
        known = np.ones(values.shape, bool)
        for part in parts:
            known = known & part.known
    else:
        arrays = [None if part is None else part.complete for part in given]
        if any(part is not None and array is None for part, array in zip(given, arrays, strict=True)):
            return None
        found = compute(operator, attributes, arrays)
        return None if found is None else PartialArray.of(found)
    return None if values is None or known is None else PartialArray(values, known)
