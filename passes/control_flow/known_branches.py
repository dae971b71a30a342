"""The pass that puts a branch in the place of an If whose condition follows from constants and fixed dims.

c = Equal (Gather (Shape (x), 1), 1)      with x: [N, 1, S]
z = If (c) <then_branch = {s = Squeeze (x, [1])}, else_branch = {i = Identity (x)}>      →      z = Squeeze (x, [1])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import onnx

from onnx_migrate.engine.fitting_passes import PredictablePass
from onnx_migrate.engine.pass_infra import register_pass
from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.facts.shape_arithmetic import OPERATORS
from onnx_migrate.facts.value_facts import Producers, ValueFacts
from onnx_migrate.model.graphs import (
    all_nodes,
    initializer_names,
    names_read,
    node_label,
    output_names,
    subgraphs,
)
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Change, ChangeLog, Exactness
from onnx_migrate.rewrite.dead_values import remove_dead_values
from onnx_migrate.standard.opsets import body_opsets
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = ["KnownBranches"]

_FOLLOWED = OPERATORS | {"Size"}


@register_pass
@dataclass(frozen=True)
class KnownBranches(PredictablePass):
    """Replace each If whose condition is known by its branch, in all bodies; other Ifs stay unchanged."""

    name: ClassVar[str] = "known_branches"
    title: ClassVar[str] = "choosing branches whose condition is constant"
    operators: ClassVar[frozenset[str]] = frozenset({"If"})

    def run(self, model: Model, log: ChangeLog) -> Model:
        """Edit `model` in place."""
        while any(_is_if(node) for node in all_nodes(model.proto)):
            bodies = scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)
            folder = _Folder(self.name, log)
            for scope, (_, opset) in zip(bodies, body_opsets(model.proto), strict=True):
                folder.body(scope, None, opset or 1)
            if not folder.unread:
                return model
            # Behind a branch that has taken its place more dims are known, and with them more conditions.
            remove_dead_values(model.proto, folder.unread)
        return model


def _is_if(node: onnx.NodeProto) -> bool:
    return node.op_type == "If" and is_onnx(node.domain)


@dataclass
class _Folder:
    pass_name: str
    log: ChangeLog
    producers: Producers = field(default_factory=Producers)
    unread: set[str] = field(default_factory=set)
    """The values that removed nodes read."""

    def body(self, scope: Scope, outer: ValueFacts | None, opset: int) -> None:
        """Replace the Ifs of a body, and of those inside it."""
        facts = ValueFacts(scope, self.producers, followed=_FOLLOWED, all_dims=True, outer=outer)
        nodes: list[onnx.NodeProto] = []
        for index, node in enumerate(scope.body.node):
            facts.refine(node, opset)
            branch = self._taken(node, facts)
            if branch is not None:
                # The If is gone, so its reads may have been the last ones of their values.
                self.unread.update(names_read(node))
                written = _spliced(node, branch, scope)
                self._record(node, written, branch, scope, opset)
                nodes += written
                continue
            nodes.append(node)
            for attribute, graph_index, graph in subgraphs(node):
                self.body(scope.inner(node, index, attribute, graph_index, graph), facts, opset)
        if len(nodes) != len(scope.body.node) or any(map(_is_if, scope.body.node)) or scope.leading_constants:
            del scope.body.node[:]
            scope.body.node.extend([*scope.leading_constants, *nodes])
            scope.leading_constants.clear()

    def _taken(self, node: onnx.NodeProto, facts: ValueFacts) -> onnx.GraphProto | None:
        """Return the branch that an If always takes; None for any other node, and for a branch that cannot replace the If."""
        if not _is_if(node) or not node.input:
            return None
        condition = facts.value(node.input[0])
        # A condition of several elements is not valid.
        if condition is None or condition.size != 1:
            return None
        wanted = "then_branch" if condition.item() else "else_branch"
        branch = next((graph for attribute, _, graph in subgraphs(node) if attribute == wanted), None)
        if branch is None or branch.sparse_initializer or len(branch.output) != len(node.output):
            return None
        return branch

    def _record(
        self,
        node: onnx.NodeProto,
        written: list[onnx.NodeProto],
        taken: onnx.GraphProto,
        scope: Scope,
        opset: int,
    ) -> None:
        """Record the nodes that stand in the place of an If, and why."""
        # The branch may be a copy.
        attribute = next(name for name, _, graph in subgraphs(node) if graph is taken or graph == taken)
        reason = f"its condition is always {attribute == 'then_branch'}: {attribute} takes its place"
        form = signature_at("", "If", opset)
        version = form.since_version if form else opset
        self.log.changes.append(
            Change(
                pass_name=self.pass_name,
                where=Where(scope.path, node_label(node), "If", version),
                serialised_before=node.SerializeToString(),
                version_before=version,
                serialised_after=None,
                version_after=version,
                opset=opset,
                emitted=tuple(branch_node.op_type for branch_node in written),
                reason=reason,
                exactness=Exactness.EXACT,
                serialised_helpers=tuple(branch_node.SerializeToString() for branch_node in written),
                serialised_constants=(),
            )
        )


def _spliced(node: onnx.NodeProto, branch: onnx.GraphProto, scope: Scope) -> list[onnx.NodeProto]:
    """Return the nodes of a branch for the body of its If, whose outputs they give; initializers are moved to the body."""
    fresh = scope.names.fresh
    # Initializers of the branch may have names that the body uses.
    renamed = {name: fresh(name) for name in sorted(initializer_names(branch))}
    for tensor in branch.initializer:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.name = renamed[tensor.name]
        scope.add_tensor(copy)
    produced = {name for inner in branch.node for name in inner.output if name}
    for inner, outer in zip(output_names(branch), node.output, strict=True):
        # Only a node of the branch can take the name of the output.
        if outer and inner in produced and inner not in renamed:
            renamed[inner] = outer
    final_names = set(renamed.values())
    renamed |= {name: fresh(name) for name in sorted(produced - renamed.keys())}
    nodes = [_renamed(inner, renamed, scope) for inner in branch.node]
    for inner, outer in zip(output_names(branch), node.output, strict=True):
        source = renamed.get(inner, inner)
        # One value may be several outputs.
        if outer and (source != outer or outer not in final_names):
            name = fresh(f"{outer}_identity")
            nodes.append(onnx.helper.make_node("Identity", [source], [outer], name=name))
    return nodes


def _renamed(node: onnx.NodeProto, names: Mapping[str, str], scope: Scope) -> onnx.NodeProto:
    """Return a copy of a node with other names of values, and a name of its own."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    if copy.name:
        # Names of nodes must stay unique.
        copy.name = scope.names.fresh(copy.name)
    for index, name in enumerate(copy.output):
        copy.output[index] = names.get(name, name)
    for index, name in enumerate(copy.input):
        copy.input[index] = names.get(name, name)
    for _, _, graph in subgraphs(copy):
        _rename_reads(graph, names)
    return copy


def _rename_reads(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    own = set(_defined(graph))
    # Names that the graph defines itself hide outer ones.
    visible = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        for index, name in enumerate(node.input):
            node.input[index] = visible.get(name, name)
        for _, _, inner in subgraphs(node):
            _rename_reads(inner, visible)
    for value in graph.output:
        value.name = visible.get(value.name, value.name)


def _defined(graph: onnx.GraphProto) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from initializer_names(graph)
    yield from (name for node in graph.node for name in node.output if name)
