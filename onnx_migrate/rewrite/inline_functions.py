"""Replaces calls of local functions by their bodies, or refuses to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableSequence
from dataclasses import dataclass

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.model.graphs import (
    FunctionKey,
    bodies,
    called,
    function_key,
    function_path,
    nested_nodes,
    subgraphs,
)
from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.standard.opsets import owners
from onnx_migrate.standard.schema import is_onnx

__all__ = ["inline_calls", "inline_functions", "other_opset"]

Attributes = Mapping[str, AttributeProto]


def other_opset(proto: ModelProto, function: FunctionProto) -> tuple[str, int, int] | None:
    """Return a domain that a function uses at another version than the model imports, with both versions; else None.

    Such a function cannot be inlined.
    """
    own = set(map(function_key, proto.functions))
    imports, outside = _versions(function), _versions(proto)
    for node in nested_nodes(function.node):
        domain = _domain(node.domain)
        if (
            called(node) not in own
            and domain in outside
            and imports.get(domain) not in (None, outside[domain])
        ):
            return domain, imports[domain], outside[domain]
    return None


def inline_calls(proto: ModelProto, keys: Collection[FunctionKey] | None = None) -> int:
    """Inline the calls of these local functions, by default of all, in place; return how many calls there were.

    The functions are removed. Values and nodes inside get new names; outputs of calls keep theirs. Functions must not be
    recursive, and use each domain at the version that the callers import (see `other_opset`).
    """
    functions = {function_key(function): function for function in proto.functions}
    if keys is not None:
        # Other functions keep their calls.
        functions = {key: function for key, function in functions.items() if key in keys}
    inliner = _Inliner(functions, Names(proto))
    for located in reversed(list(bodies(proto))):  # the nodes of an outer body are copied after those inside
        if isinstance(located.body, FunctionProto) and function_key(located.body) in functions:
            continue
        inliner.body(located.body, located.owner)
    remaining_functions = [
        function for function in proto.functions if function_key(function) not in functions
    ]
    del proto.functions[:]
    proto.functions.extend(remaining_functions)
    _drop_imports(proto, {domain for domain, _, _ in functions})
    return inliner.calls


@dataclass
class _Inliner:
    functions: Mapping[FunctionKey, FunctionProto]
    names: Names
    calls: int = 0

    def body(self, body: GraphProto | FunctionProto, owner: ModelProto | FunctionProto) -> None:
        """Inline the calls among the nodes of one body; its sub-graphs are bodies of their own."""
        if not any(called(node) in self.functions for node in body.node):
            return
        nodes = [inner for node in body.node for inner in self._expanded(node, owner)]
        del body.node[:]
        body.node.extend(nodes)

    def _expanded(self, node: NodeProto, owner: ModelProto | FunctionProto) -> Iterator[NodeProto]:
        """Yield a node, or the nodes of the function that it calls. Nodes inside sub-graphs of a function are expanded too."""
        function = self.functions.get(called(node))
        if function is None:
            yield node
            return
        self.calls += 1
        _import(owner, function)
        attributes = {attribute.name: attribute for attribute in function.attribute_proto}
        # Attributes of the call replace the defaults.
        attributes.update((attribute.name, attribute) for attribute in node.attribute)
        renamed, copies = self._bound(function, node)
        for inner in function.node:
            for name in inner.output:
                # Outputs of the function have the names of the call already.
                if name and name not in renamed:
                    renamed[name] = self.names.fresh(name)
        for inner in function.node:
            copy = self._copy(inner, renamed, attributes)
            # Calls inside sub-graphs are expanded, too.
            for _, _, graph in subgraphs(copy):
                self._nested(graph, owner)
            yield from self._expanded(copy, owner)
        yield from copies

    def _nested(self, graph: GraphProto, owner: ModelProto | FunctionProto) -> None:
        self.body(graph, owner)
        for node in graph.node:
            for _, _, inner in subgraphs(node):
                self._nested(inner, owner)

    def _bound(self, function: FunctionProto, call: NodeProto) -> tuple[dict[str, str], list[NodeProto]]:
        """Return the names of a function's inputs and outputs at a call, and nodes for outputs that are inputs too."""
        arguments = [*call.input, *[""] * len(function.input)]
        renamed = dict(zip(function.input, arguments, strict=False))
        wanted = [*call.output, *[""] * len(function.output)]
        copies = []
        for formal, actual in zip(function.output, wanted, strict=False):
            # An output that is also an input has no node inside, so an Identity passes the value on.
            if formal not in renamed:
                renamed[formal] = actual or self.names.fresh(formal)
            elif actual:
                copies.append(NodeProto(op_type="Identity", input=[renamed[formal]], output=[actual]))
        return renamed, copies

    def _copy(self, node: NodeProto, renamed: Mapping[str, str], attributes: Attributes) -> NodeProto:
        """Return a node of a function with other names of values, and the attributes of a call."""
        copy = NodeProto()
        copy.CopyFrom(node)
        # The names inside a function are its own, and each call gives them names of the caller.
        _rename_all(copy.input, renamed)
        # An argument that the call leaves out has the empty name, and onnx wants no such names at the end.
        while copy.input and not copy.input[-1]:
            del copy.input[-1]
        _rename_all(copy.output, renamed)
        if copy.name:
            copy.name = self.names.fresh(copy.name)
        for _, _, graph in subgraphs(
            copy
        ):  # those of the function; one that the call gives reads the caller's names
            self._rename_graph(graph, renamed, attributes)
        attributes_at_call = [
            attribute
            for attribute in (_given(each, attributes) for each in copy.attribute)
            if attribute is not None
        ]
        del copy.attribute[:]
        copy.attribute.extend(attributes_at_call)
        return copy

    def _rename_graph(self, graph: GraphProto, outer: Mapping[str, str], attributes: Attributes) -> None:
        # Names that the graph defines must not collide with those of the caller.
        own = [value.name for value in graph.input]
        own += [tensor.name for tensor in graph.initializer]
        own += [sparse.values.name for sparse in graph.sparse_initializer]
        own += [name for node in graph.node for name in node.output if name]
        renamed = {**outer, **{name: self.names.fresh(name) for name in dict.fromkeys(own)}}
        for value in (*graph.input, *graph.output, *graph.value_info):
            value.name = renamed.get(value.name, value.name)
        for tensor in graph.initializer:
            tensor.name = renamed[tensor.name]
        for sparse in graph.sparse_initializer:
            sparse.values.name = renamed[sparse.values.name]
        for note in graph.quantization_annotation:
            note.tensor_name = renamed.get(note.tensor_name, note.tensor_name)
            for entry in note.quant_parameter_tensor_names:
                entry.value = renamed.get(entry.value, entry.value)
        nodes = [self._copy(node, renamed, attributes) for node in graph.node]
        del graph.node[:]
        graph.node.extend(nodes)


def _given(attribute: AttributeProto, attributes: Attributes) -> AttributeProto | None:
    """Return an attribute of a function's node as a call sets it, None where it refers to one that is not given."""
    if not attribute.ref_attr_name:
        return attribute
    value = attributes.get(attribute.ref_attr_name)
    if value is None:
        return None
    copy = AttributeProto()
    copy.CopyFrom(value)
    copy.name = attribute.name
    return copy


def _rename_all(names: MutableSequence[str], renamed: Mapping[str, str]) -> None:
    for index, name in enumerate(names):
        if name in renamed:
            names[index] = renamed[name]


def _domain(domain: str) -> str:
    return "" if is_onnx(domain) else domain


def _versions(owner: ModelProto | FunctionProto) -> dict[str, int]:
    return {_domain(entry.domain): int(entry.version) for entry in owner.opset_import}


def _import(owner: ModelProto | FunctionProto, function: FunctionProto) -> None:
    """Import the domains of a function's nodes where these are written."""
    imported_versions, used = _versions(owner), {_domain(node.domain) for node in nested_nodes(function.node)}
    for entry in function.opset_import:
        if _domain(entry.domain) in used - imported_versions.keys():
            owner.opset_import.add().CopyFrom(entry)


def _drop_imports(proto: ModelProto, domains: Collection[str]) -> None:
    """Drop the imports of domains of functions that nothing uses any more."""
    for owner in owners(proto):
        nodes = nested_nodes(owner.graph.node if isinstance(owner, ModelProto) else owner.node)
        # A domain may be imported for other nodes too.
        gone = set(domains) - {node.domain for node in nodes} - {""}
        remaining_imports = [entry for entry in owner.opset_import if entry.domain not in gone]
        if len(remaining_imports) < len(owner.opset_import):
            del owner.opset_import[:]
            owner.opset_import.extend(remaining_imports)


def inline_functions(
    model: Model, functions: Collection[FunctionKey] | None = None, *, code: str = ""
) -> Model:
    """Replace all calls of these functions, by default of all, in place, and remove the functions; return the model.

    Weights stay references. Raises CannotMigrate, with `code` if given, for a function that uses another opset than the model.
    """
    for function in model.proto.functions:
        # A body has one version of each domain.
        other = other_opset(model.proto, function)
        if other is not None and (functions is None or function_key(function) in functions):
            domain, own, outer = other
            raise CannotMigrate(
                f"the function cannot be inlined: it uses opset {own} of {domain or 'ai.onnx'}, and the model opset {outer}",
                code=code or "cannot-inline",
                where=Where(function_path(function)),
                hint=Advice(
                    f"bring both to one opset: --opset {max(own, outer)}",
                    options={"opset": max(own, outer)},
                )
                if not domain
                else "",
            )
    inline_calls(model.proto, functions)
    return model
