"""One node with the estimates of its inputs, as the rules of operators read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import AttributeProto, helper

from onnx_migrate.facts.running_cost.value_estimate import Array, Dims, ValueEstimate

__all__ = ["Node", "bound_attributes"]

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def bound_attributes(node: onnx.NodeProto, bindings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's attributes without graphs; a reference to a function's attribute gets its value from `bindings`."""
    attributes = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in bindings:
                attributes[attribute.name] = bindings[attribute.ref_attr_name]
        elif attribute.type not in _GRAPHS:
            attributes[attribute.name] = helper.get_attribute_value(attribute)
    return attributes


@dataclass(frozen=True)
class Node:
    """A node of ai.onnx. An omitted input is None."""

    operator: str
    inputs: Sequence[ValueEstimate | None]
    outputs: int
    attributes: Mapping[str, Any]

    def value(self, place: int) -> ValueEstimate | None:
        """Return the estimate of an input."""
        return self.inputs[place] if place < len(self.inputs) else None

    def dims(self, place: int = 0) -> Dims | None:
        """Return the sizes of an input."""
        value = self.value(place)
        return None if value is None else value.dims

    def array(self, place: int) -> Array | None:
        """Return the numbers of a small input."""
        value = self.value(place)
        return None if value is None else value.values

    def numbers(self, place: int, name: str = "") -> list[Any] | None:
        """Return the numbers that an attribute of this name, else an input, holds; None if they are not known."""
        if name in self.attributes:
            return list(self.attributes[name])
        array = self.array(place)
        return None if array is None else list(array.reshape(-1).tolist())

    def number(self, name: str, default: int) -> int:
        """Return an attribute that is a number."""
        return int(self.attributes.get(name, default))

    def has_input(self, place: int) -> bool:
        """Return whether an input is there, known or not."""
        return place < len(self.inputs) and self.inputs[place] is not None
