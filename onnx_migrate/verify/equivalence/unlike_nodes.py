"""Checks whether two nodes of two models, whose values have the same names, are written differently, inside as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import starmap

import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import Body, called, function_key, names_read, node_label, subgraphs
from onnx_migrate.model.matching import attribute_key, match_changed
from onnx_migrate.verify.compare.bits import bit_difference
from onnx_migrate.verify.equivalence.value_by_value import stored
from onnx_migrate.verify.evaluators import Runnable

__all__ = ["Unlike"]


@dataclass(frozen=True)
class Unlike:
    """Whether nodes of two models are written differently, or read other constants."""

    original: Runnable
    other: Runnable

    def at(self, one: onnx.NodeProto | None, other: onnx.NodeProto | None) -> bool:
        """Return whether the nodes differ in more than names; the graphs inside of them do not count."""
        if one is None or other is None:
            return one is not other
        forms = [
            (node.op_type, node.domain, len(node.input), sorted(map(attribute_key, node.attribute)))
            for node in (one, other)
        ]
        return forms[0] != forms[1] or any(
            starmap(self._other_data, zip(one.input, other.input, strict=True))
        )

    def inside(self, one: onnx.NodeProto, other: onnx.NodeProto) -> str:
        """Describe the first node in the graphs of two nodes, or the functions that they call, that differs; "" if none does."""
        for before, after in self._bodies(one, other):
            constants = [
                {*tensors, *_initializers(body)}
                for tensors, body in zip(self._tensors, (before, after), strict=True)
            ]
            computed_names = {name for node in after.node for name in node.output}
            outer_names = {
                name: name for node in after.node for name in names_read(node) if name not in computed_names
            }
            # Bodies pair their inputs by position, because names may differ.
            outer_names |= dict(zip(_inputs(after), _inputs(before), strict=False))
            matching = match_changed(before.node, after.node, outer_names, (constants[0], constants[1]))
            for index, node in enumerate(after.node):
                partner = before.node[matching.partner[index]] if index in matching.partner else None
                here = f"inside it {node.op_type} {node_label(node)!r}"
                if partner is None:
                    return f"{here} has no counterpart in the original"
                # A node agrees only if it also reads the same values.
                wired = all(
                    matching.old(name) == old or (old in constants[0] and name in constants[1])
                    for old, name in zip(partner.input, node.input, strict=False)
                )
                if not wired or self.at(partner, node):
                    return f"{here} differs from {partner.op_type} {node_label(partner)!r} in the original"
                if deeper := self.inside(partner, node):
                    return deeper
        return ""

    def _bodies(self, one: onnx.NodeProto, other: onnx.NodeProto) -> Iterator[tuple[Body, Body]]:
        for (_, _, before), (_, _, after) in zip(subgraphs(one), subgraphs(other), strict=False):
            yield before, after
        functions = [of.get(called(node)) for of, node in zip(self._functions, (one, other), strict=True)]
        if functions[0] is not None and functions[1] is not None:
            yield functions[0], functions[1]

    def _other_data(self, one: str, other: str) -> bool:
        ours, theirs = self._tensors[0].get(one), self._tensors[1].get(other)
        if ours is None or theirs is None:
            return ours is not theirs
        arrays = self.original.inlined(ours), self.other.inlined(theirs)
        return bool(bit_difference(one, *map(numpy_helper.to_array, arrays)))

    @cached_property
    def _tensors(self) -> tuple[dict[str, TensorProto], dict[str, TensorProto]]:
        return stored(self.original.model), stored(self.other.model)

    @cached_property
    def _functions(self) -> list[dict[tuple[str, str, str], onnx.FunctionProto]]:
        models = self.original.model, self.other.model
        return [{function_key(function): function for function in model.functions} for model in models]


def _inputs(body: Body) -> list[str]:
    if isinstance(body, onnx.FunctionProto):
        return list(body.input)
    return [value.name for value in body.input]


def _initializers(body: Body) -> list[str]:
    return [] if isinstance(body, onnx.FunctionProto) else [tensor.name for tensor in body.initializer]
