"""Removes nodes and values that no output depends on, and repairs names and value_info that runtimes or checkers reject."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, ClassVar

import onnx

from onnx_migrate.engine.model_properties import ModelProperty
from onnx_migrate.engine.pass_infra import Pass, register_pass
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import (
    Body,
    LocatedBody,
    bodies,
    initializer_names,
    names_read,
    names_read_by_each,
    output_names,
    outputs_of_each,
)
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.rewrite.annotations import drop_unused_imports, note_unused_imports
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["Cleanup"]

_name = attrgetter("name")


@register_pass
@dataclass(frozen=True)
class Cleanup(Pass):
    """Remove nodes, initializers and imports that nothing uses, repeated node names and invalid value_info."""

    name: ClassVar[str] = "cleanup"
    title: ClassVar[str] = "removing unused nodes and weights"
    requires: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.SORTED})
    ensures: ClassVar[frozenset[ModelProperty]] = frozenset({ModelProperty.UNIQUE_NODE_NAMES})

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Clean `model` up in place."""
        names = Names(model.proto)
        all_bodies, removed = list(bodies(model.proto)), False
        for located in reversed(
            all_bodies
        ):  # a dead node in a sub-graph may be the only reader of an outer value
            removed |= self._remove_dead(located, log)
        for located in bodies(model.proto) if removed else all_bodies:
            body, path = located.body, located.path
            self._rename_duplicates(body, path, names, log)
            if isinstance(body, onnx.GraphProto):
                self._drop_value_info(body, path, log)
        # Imports of domains that nothing uses keep older runtimes from loading the model.
        note_unused_imports(self.name, drop_unused_imports(model.proto), log)
        return model

    def _remove_dead(self, located: LocatedBody, log: ChangeLog) -> bool:
        """Keep a node if an output or a node after it reads it: in topological order every reader comes after.

        If something reads every output, nothing is dead. Return whether any node was removed.
        """
        body, path = located.body, located.path
        each = names_read_by_each(body.node, located.operators)
        # A graph inside may read any of these values.
        read = {*output_names(body), *filter(None, chain.from_iterable(each))}
        live: list[onnx.NodeProto] = []
        dead = 0
        if not read.issuperset(filter(None, chain.from_iterable(outputs_of_each(body.node)))):
            read = set(output_names(body))
            for node in reversed(body.node):
                outputs = list(node.output)
                if not read.isdisjoint(outputs) or not any(outputs):
                    live.append(node)
                    read.update(names_read(node))
            dead = len(body.node) - len(live)
        if dead:
            _replace(body.node, live[::-1])
            log.note(
                self.name,
                "dead-nodes",
                f"removed {count_of(dead, 'node')} of {path} that no output depends on",
                subject=path,
            )
        if not isinstance(body, onnx.GraphProto):
            return bool(dead)
        # An initializer that is also an input belongs to the interface.
        read.update(value.name for value in body.input)
        # Annotations name weights, too.
        for note in body.quantization_annotation:
            read.update((note.tensor_name, *(entry.value for entry in note.quant_parameter_tensor_names)))
        used = [tensor for tensor in body.initializer if tensor.name in read]
        used_sparse = [sparse for sparse in body.sparse_initializer if sparse.values.name in read]
        unused = len(body.initializer) + len(body.sparse_initializer) - len(used) - len(used_sparse)
        if unused:
            _replace(body.initializer, used)
            _replace(body.sparse_initializer, used_sparse)
            log.note(
                self.name,
                "dead-weights",
                f"removed {count_of(unused, 'initializer')} of {path} that no node reads",
                subject=path,
            )
        return bool(dead)

    def _rename_duplicates(self, body: Body, path: str, names: Names, log: ChangeLog) -> None:
        """Append a number to repeated node names: ONNX allows them, ONNX Runtime rejects them."""
        # Most models have unique names.
        if len(set(map(_name, body.node))) == len(body.node):
            return
        seen: set[str] = set()
        renamed = 0
        for node in body.node:
            if node.name in seen:
                node.name = names.fresh(node.name)
                renamed += 1
            elif node.name:
                seen.add(node.name)
        if renamed:
            log.note(
                self.name,
                "node-names",
                f"renamed {count_of(renamed, 'node')} of {path} that had the name of another node",
                subject=path,
            )

    def _drop_value_info(self, graph: onnx.GraphProto, path: str, log: ChangeLog) -> None:
        """Drop entries that are repeated or without a type, and those of inputs, outputs, initializers and no value."""
        if not graph.value_info:
            return
        undeclared = {name for node in graph.node for name in node.output if name}
        undeclared.difference_update(value.name for value in (*graph.input, *graph.output))
        undeclared -= initializer_names(graph)
        declared = []
        for value in reversed(graph.value_info):  # of several, ONNX Runtime reads the last
            if value.name in undeclared and value.type.WhichOneof("value"):
                undeclared.discard(value.name)
                declared.append(value)
        declared.reverse()
        dropped = len(graph.value_info) - len(declared)
        if dropped:
            _replace(graph.value_info, declared)
            log.note(
                self.name,
                "value-info",
                f"removed {count_of(dropped, 'declared shape')} of {path}: repeated, without a type, or of no inner value",
                subject=path,
            )


def _replace(field: Any, kept: list[Any]) -> None:
    del field[:]
    field.extend(kept)
