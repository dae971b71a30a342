"""Pairs the values of one model with those of another under any names, so that both can be compared value by value."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import fed_inputs, initializer_names, subgraphs
from onnx_migrate.model.matching import match_changed
from onnx_migrate.model.names import Names
from onnx_migrate.model.toposort import sort_model
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Counterparts", "rename_values"]


@dataclass(frozen=True)
class Counterparts:
    """A model whose values have the names that they have in another, and its own names by these."""

    model: onnx.ModelProto
    own: Mapping[str, str]

    @classmethod
    def of(cls, model: onnx.ModelProto, other: onnx.ModelProto) -> Counterparts:
        """Return a copy of `model` with the names of `other`; a value that is none of the other's has a name that is not, too."""
        named, first = onnx.ModelProto(), onnx.ModelProto()
        named.CopyFrom(model)
        first.CopyFrom(other)
        for proto in (named, first):
            sort_model(proto)
        constants = _constants(first), _constants(named)
        outer_names = {value.name: value.name for value in fed_inputs(named.graph)}
        # Constants of the same data are the same value, even under different names.
        by_content = {content: name for name, content in constants[0].items() if content}
        for name, content in constants[1].items():
            outer_names[name] = by_content.get(content, name) if constants[0].get(name) != content else name
        matching = match_changed(
            first.graph.node, named.graph.node, outer_names, (constants[0].keys(), constants[1].keys())
        )
        computed = {name for node in named.graph.node for name in node.output if name} - constants[1].keys()
        # The names of outputs belong to the interface.
        fixed = {output.name for output in named.graph.output}
        wanted = {
            name: new
            for name, new in matching.renamed.items()
            # A name of an output must not move to another value.
            if name in computed and (name == new or not {name, new} & fixed)
        }
        names_of_first = {name for node in first.graph.node for name in node.output} | initializer_names(
            first.graph
        )
        names = Names(first)
        # Sorted, so that the generated names do not depend on a set's order.
        for name in sorted(computed - wanted.keys() - fixed):
            wanted[name] = names.fresh(f"{name}_of_the_second") if name in names_of_first else name
        held = set(wanted.values())
        # A constant of the second model may have the name of a value of `first`.
        for name in constants[1]:
            if name in held:
                wanted[name] = names.fresh(f"{name}_of_the_second")
        changed = {name: new for name, new in wanted.items() if name != new}
        rename_values(named.graph, changed)
        return cls(named, {new: name for name, new in changed.items()})


def rename_values(graph: onnx.GraphProto, renamed: Mapping[str, str]) -> None:
    """Rename values of a graph, in place, in the nodes that compute or read them and in declarations, also in sub-graphs."""
    declared: Any = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    for declaration in [*declared, *(sparse.values for sparse in graph.sparse_initializer)]:
        if declaration.name in renamed:
            declaration.name = renamed[declaration.name]
    for node in graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name in renamed:
                    names[index] = renamed[name]
        for _, _, inner in subgraphs(node):
            rename_values(inner, renamed)


def _constants(proto: onnx.ModelProto) -> dict[str, bytes]:
    """Return the constants of the main graph by name, each with a digest of its data in the structure."""
    graph = proto.graph
    fed = {value.name for value in graph.input}
    constants = {tensor.name: _digest(tensor) for tensor in graph.initializer if tensor.name not in fed}
    constants |= {sparse.values.name: b"" for sparse in graph.sparse_initializer}
    # A caller may override these, so their data says nothing.
    constants |= {tensor.name: b"" for tensor in graph.initializer if tensor.name in fed}
    for node in graph.node:
        if node.op_type == "Constant" and is_onnx(node.domain):
            tensors = [attribute.t for attribute in node.attribute if attribute.name == "value"]
            constants[node.output[0]] = (
                _digest(tensors[0]) if tensors else node.attribute[0].SerializeToString()
            )
    return constants


def _digest(tensor: TensorProto) -> bytes:
    """Return a digest that distinguishes a tensor from others of the same model; b"" if its data are elsewhere."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return b""
    copy = TensorProto()
    copy.CopyFrom(tensor)
    copy.ClearField("name")
    return hashlib.blake2b(copy.SerializeToString(deterministic=True), digest_size=16).digest()
