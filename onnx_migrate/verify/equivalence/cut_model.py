"""A model cut at some of its values: each is computed from given values of the others, not from what the model computes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import onnx

from onnx_migrate.model.graphs import fed_inputs, names_read, producers
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.evaluators import UNOPTIMIZED, Runnable, open_model

__all__ = ["CutModel", "Reads"]

_COMPUTED = " (computed)"
"""Added to the name of a value that the model computes, where others read the one that is given."""


class CutModel:
    """A model that computes the values `wanted`, each from the inputs and from the given `values` of others."""

    def __init__(self, runnable: Runnable, values: Mapping[str, Array], wanted: Sequence[str]) -> None:
        model = runnable.proto()
        graph = model.graph
        for node in graph.node:
            for index, name in enumerate(node.output):
                if name in values:
                    node.output[index] = name + _COMPUTED
        results = [name + _COMPUTED if name in values else name for name in wanted]
        kept = _needed(graph.node, set(results))
        read = {name for node in kept for name in names_read(node)}
        inputs = [value for value in graph.input if value.name in read]
        inputs += [_input(name, value) for name, value in values.items() if name in read]
        constants = [tensor for tensor in graph.initializer if tensor.name in read]
        sparse = [tensor for tensor in graph.sparse_initializer if tensor.values.name in read]
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        shapes = [value for value in graph.value_info if value.name not in values]
        cut = onnx.GraphProto(
            name=graph.name, node=kept, input=inputs, output=outputs, initializer=constants,
            sparse_initializer=sparse, value_info=shapes,
        )  # fmt: skip
        graph.CopyFrom(cut)
        self._inputs = {value.name for value in fed_inputs(graph)}
        self._evaluator = open_model(runnable.with_structure(model), UNOPTIMIZED) if wanted else None

    def run(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the wanted values, computed from those that the model reads of the given ones."""
        if self._evaluator is None:
            return {}
        outputs = self._evaluator.run({name: value for name, value in given.items() if name in self._inputs})
        return {name.removesuffix(_COMPUTED): value for name, value in outputs.items()}


class Reads:
    """Which of the values at which a model is cut each other is computed from."""

    def __init__(self, model: onnx.ModelProto, cuts: Collection[str]) -> None:
        self._producers = producers(model.graph)
        self._cuts = set(cuts)

    def by(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the cuts that these values are computed from, each without passing another cut."""
        return (name for name in self.all_by(names) if name in self._cuts)

    def all_by(self, names: Sequence[str]) -> Iterator[str]:
        """Yield all values that these are computed from, up to the next cuts."""
        seen = set(names)
        stack = list(names)
        while stack:
            node = self._producers.get(stack.pop())
            for name in names_read(node) if node is not None else ():
                if name in seen:
                    continue
                seen.add(name)
                yield name
                if name not in self._cuts:
                    stack.append(name)


def _needed(nodes: Sequence[onnx.NodeProto], wanted: set[str]) -> list[onnx.NodeProto]:
    """Return the nodes that compute these values, in their order."""
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted.update(names_read(node))
            kept.append(node)
    return kept[::-1]


def _input(name: str, value: Array) -> onnx.ValueInfoProto:
    """Declare an input of this value's type and rank, with open lengths: another feed may have others."""
    element = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    return onnx.helper.make_tensor_value_info(name, element, [None] * value.ndim)
