"""The abstract interpreter: it evaluates a model's nodes in order, starting at the inputs, and repairs each node.

The value of a tensor is its type, dims and small elements under each sample assignment of the symbols (`domain`).
`node_evaluation` evaluates each node. This module enters sub-graphs and local functions. The rewrite driver traverses
a body, and inserts the nodes that repair rules wrote. A conflict ends the interpretation, and `search`
starts another one under other hypotheses on a fresh copy of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import count

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import (
    Body,
    FunctionKey,
    called,
    fed_inputs,
    function_key,
    initializer_names,
    names_read,
    nested_bodies,
    output_names,
    producers,
    subgraphs,
)
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.rewrite.driver import Driver, Visitor
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.standard.schema import is_onnx

from .control_flow.branches import BranchConflict, branch_of_length, branch_taken, inlining_of
from .control_flow.function_calls import FunctionCalls
from .control_flow.loop_bodies import iteration_of
from .domain import Array, Assignments, Dim, Dims, SampledValue
from .domain.values import (
    join,
    value_of_body_input,
    value_of_constant,
    value_of_input,
    value_of_sparse,
    value_of_tensor,
)
from .graph_state import GraphState, LoopState
from .grids import constant_array
from .hypotheses import Hypotheses
from .node_context import BatchMerged, NodeContext, UnrepairableNode
from .node_evaluation import evaluate, record_emitted
from .table_facts import TableFacts
from .tracked import Tracked

__all__ = ["Coverage", "Interpreter", "Resolutions"]


@dataclass
class Coverage:
    """Counts over the nodes that one interpretation visited; a node in a function counts once for each call."""

    visited: int = 0
    """The nodes visited."""
    varying: int = 0
    """The nodes with an output that varies with a symbol that is not a batch."""

    def count(self, outputs: Iterable[SampledValue]) -> None:
        """Count one node by the values of its outputs."""
        dims = [dim for value in outputs for dim in value.dims or () if dim is not None]
        self.varying += any(dim.sizes[0] == dim.sizes[3] != dim.sizes[1] for dim in dims)


@dataclass
class Resolutions:
    """How the search resolved conflicts that no hypothesis resolves."""

    tolerated: set[str] = field(default_factory=set)
    """The labels of nodes that may mix the items of a batch."""
    expanded_states: list[tuple[LoopState, int, Dim]] = field(default_factory=list)
    """The loop-carried values whose initial values are expanded, each with the axis and the dim that it gets."""
    kept_branches: set[str] = field(default_factory=set)
    """The labels of Ifs that stay."""


class Interpreter(Visitor):
    """One interpretation of a model, which is edited in place, under the hypotheses chosen so far.

    `run` raises UnrepairableNode at the first node in conflict: BatchMixed, LoopStateConflict and BranchConflict unless
    `resolved` has the node.
    """

    # The inputs of a Loop's or Scan's body follow from those of its node, so `rewrite` opens the body.
    opens_subgraphs = True

    def __init__(
        self,
        model: Model,
        assignments: Assignments,
        hypotheses: Hypotheses,
        log: ChangeLog,
        pass_name: str,
        resolved: Resolutions,
    ) -> None:
        proto = model.proto
        self.log, self.pass_name = log, pass_name
        self.coverage = Coverage()
        """How many nodes were interpreted, and how many of them depend on each symbol."""
        self.batch_removers: list[NodeContext] = []
        """The nodes that removed the batch axis, and were made Reshapes that merge it with its neighbour."""
        self.outputs: dict[str, Dims | None] = {}
        """The dims of the graph's outputs, after `run`."""
        self.table_facts = TableFacts()
        """Facts about the computed tables of all bodies, after `run`."""
        self._calls: dict[FunctionKey, FunctionCalls] = {}
        self._resolved = resolved
        self._model = model
        self._assignments = assignments
        self._hypotheses = hypotheses
        self._outputs = set(output_names(proto.graph))
        self._output_contexts: dict[str, NodeContext] = {}
        self._main, *inner = scopes(proto, model.weights, result_ir_version=proto.ir_version)
        self._functions: dict[FunctionKey, tuple[onnx.FunctionProto, Scope]] = {
            function_key(function): (function, scope)
            for function, scope in zip(proto.functions, inner, strict=True)
        }
        self._bodies: list[tuple[GraphState, Iterator[int]]] = []
        """The bodies that are being interpreted, the innermost last, with the indices of their nodes."""

    def run(self) -> None:
        """Interpret and repair the main graph and its sub-graphs and functions. Raises UnrepairableNode."""
        graph = self._model.proto.graph
        inputs = {value.name: value_of_input(value, self._assignments) for value in fed_inputs(graph)}
        state = self._interpret_body(graph, self._main, inputs, imports=self._model.proto.opset_import)
        self.outputs = {name: state.value(name).dims for name in self._outputs}
        symbols = set(self._assignments.sizes.values())
        for name, context in sorted(self._output_contexts.items()):
            for axis, dim in enumerate(state.value(name).dims or ()):
                if dim is not None and dim.sizes not in symbols and dim.of_batch:
                    raise BatchMerged(
                        context,
                        f"axis {axis} of output {name!r} would be {self._assignments.text(dim)}. It would merge the"
                        " batch with another axis, so the items of a batch could not be separated",
                    )

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int:
        """Return `opset`: every node is interpreted."""
        return opset

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        """Repair the next node of a body and record its outputs' values; return None if nothing was edited.

        Raises UnrepairableNode.
        """
        state, indices = self._bodies[-1]
        name = node.name or next((output for output in node.output if output), "")
        where = Where(scope=scope.path, node=name, operator=node.op_type)
        rw = Rewriter(node, scope, version, version, where)
        inputs = [state.value(name) if name else None for name in node.input]
        context = NodeContext(node, rw, state, inputs, self._hypotheses, where)
        outputs = self._interpret_node(context, next(indices))
        for name, value in zip(node.output, outputs, strict=False):
            if name:
                state.record(name, value)
        self.coverage.count(outputs)
        if scope is self._main:
            self._output_contexts.update({name: context for name in node.output if name in self._outputs})
        return rw if rw.edited else None

    def _interpret_body(
        self,
        body: Body,
        scope: Scope,
        inputs: Mapping[str, SampledValue],
        parent: GraphState | None = None,
        *,
        imports: Iterable[onnx.OperatorSetIdProto] = (),
        loop_states: Mapping[str, LoopState] | None = None,
        tracked: Mapping[str, Tracked] | None = None,
        constants: Mapping[str, Array | None] | None = None,
    ) -> GraphState:
        """Interpret the nodes of a body; a sub-graph has the imports of `parent`.

        `tracked` and `constants` have names of inputs as their keys.
        """
        versions = parent.imports if parent else {entry.domain: entry.version for entry in imports}
        own = initializer_names(body) if isinstance(body, onnx.GraphProto) else ()
        state = GraphState(
            scope,
            self._assignments,
            parent,
            versions,
            self._model.proto.ir_version,
            producers=producers(body),
            initializers=frozenset(own),
            loop_states=loop_states or {},
            table_facts=self.table_facts,
            computed_constants={**(constants or {})},
        )
        for node in body.node:
            for name in dict.fromkeys(names_read(node)) if any(subgraphs(node)) else node.input:
                state.consumers.setdefault(name, []).append(node)
        for name, known in (tracked or {}).items():
            state.track(name, known)
        for name, value in inputs.items():
            state.record(name, value)
        if isinstance(body, onnx.GraphProto):
            for tensor in body.initializer:
                if tensor.name not in state.values:
                    state.values[tensor.name] = value_of_tensor(tensor, self._model.weights)
            for sparse in body.sparse_initializer:
                state.values[sparse.values.name] = value_of_sparse(sparse)
        self._bodies.append((state, count()))
        try:
            Driver(self).body(scope, versions.get("", versions.get("ai.onnx", 1)))
        finally:
            self._bodies.pop()
        return state

    def _interpret_node(self, context: NodeContext, index: int) -> list[SampledValue]:
        """Repair one node and return the values of its outputs. Raises UnrepairableNode."""
        node = context.node
        self.coverage.visited += 1
        if node.op_type == "Constant" and is_onnx(node.domain):
            return [value_of_constant(node, context.graph_state.scope)]
        key = called(node)
        if key in self._functions:
            return self._interpret_call(context, key)
        graphs = list(subgraphs(node))
        if graphs:
            return self._interpret_subgraphs(context, index, graphs)
        outputs = evaluate(context, self._resolved.tolerated)
        if context.removed_batch:
            self.batch_removers.append(context)
        return outputs

    def _interpret_call(self, context: NodeContext, key: FunctionKey) -> list[SampledValue]:
        """Repair the body of a function for all calls, with the values of this one; return the values of the outputs."""
        node, (function, scope) = context.node, self._functions[key]
        pairs = zip(function.input, context.inputs, strict=False)
        inputs = {name: value for name, value in pairs if value is not None}
        tracked = {
            inner: context.graph_state.tracked(context.rw.input(index))
            for index, inner in enumerate(function.input)
        }
        constants = {
            inner: constant_array(context.graph_state, context.rw.input(index))
            for index, inner in enumerate(function.input)
            if context.constant(index) is not None
        }
        sizes, tables = self.table_facts.replaced, self.table_facts.tables
        state = self._interpret_body(
            function,
            scope,
            inputs,
            imports=function.opset_import,
            tracked=tracked,
            constants=constants,
        )
        calls = self._calls.setdefault(key, FunctionCalls(tracked, constants))
        calls.sizes |= self.table_facts.replaced > sizes
        calls.tables |= self.table_facts.tables > tables
        calls.add(context, tracked, constants)
        for name, inner in zip(node.output, function.output, strict=False):
            context.graph_state.track(name, state.tracked(inner))
            if state.value(inner).constant() is not None:
                context.graph_state.computed_constants[name] = constant_array(state, inner)
        return [state.value(name) for name in function.output]

    def _interpret_subgraphs(
        self, context: NodeContext, index: int, graphs: list[tuple[str, int, onnx.GraphProto]]
    ) -> list[SampledValue]:
        """Interpret the sub-graphs of an If, Loop, Scan or foreign node; an If's outputs join those of its branches."""
        if context.node.op_type == "If" and is_onnx(context.node.domain) and len(graphs) == 2:
            return self._interpret_branches(context, index, graphs)
        outer = context.graph_state
        for attribute, number, graph in graphs:
            scope = outer.scope.inner(context.node, index, attribute, number, graph)
            inputs = {value.name: value_of_body_input(value) for value in graph.input}
            iteration = iteration_of(context, graph)
            if iteration is None:
                self._interpret_body(graph, scope, inputs, outer)
                continue
            inputs |= iteration.body_inputs(self._resolved.expanded_states)
            loop_states = iteration.loop_states()
            # The repair of the trip count or of a state may have written nodes that the body reads.
            record_emitted(context)
            constants = {
                inner: constant_array(outer, name) for inner, name in iteration.constant_inputs().items()
            }
            tracked = iteration.tracked_inputs()
            while True:
                state = self._interpret_body(
                    graph,
                    scope,
                    inputs,
                    outer,
                    loop_states=loop_states,
                    tracked=tracked,
                    constants=constants,
                )
                later = iteration.tracked_later(tracked, state)
                if all(known.equals(tracked[name]) for name, known in later.items()):
                    break
                # A value that the next iteration gets holds coordinates, which the first one did not have.
                tracked = later
            iteration.track_outputs(tracked, state)
            return iteration.outputs([state.value(name) for name in output_names(graph)])
        return [SampledValue() for _ in context.node.output]

    def _interpret_branches(
        self, context: NodeContext, index: int, graphs: list[tuple[str, int, onnx.GraphProto]]
    ) -> list[SampledValue]:
        """Interpret both branches of an If; a branch with a conflict stays unchanged if a known condition never takes it."""
        outer = context.graph_state
        inlines = context.label not in self._resolved.kept_branches
        branch = branch_taken(context.input(0))
        results: dict[str, list[SampledValue]] = {}
        tracked: list[list[Tracked]] = []
        for attribute, number, graph in graphs:
            # A conflict ends the interpretation in the middle of the branch, after some of its nodes were
            # edited.
            untouched = onnx.GraphProto()
            untouched.CopyFrom(graph)
            facts = self.table_facts.copy()
            scope = outer.scope.inner(context.node, index, attribute, number, graph)
            try:
                state = self._interpret_body(graph, scope, {}, outer)
            except UnrepairableNode as error:
                frozen = branch_of_length(context) if inlines else None
                if frozen is not None:
                    raise BranchConflict(context, frozen) from error
                calls_function = any(
                    called(inner) in self._functions
                    for _, body in nested_bodies(graph)
                    for inner in body.node
                )
                if branch in (None, attribute) or calls_function:
                    raise  # the functions are edited, and other nodes may call them too
                graph.CopyFrom(untouched)
                self.table_facts.restore(facts)
                continue
            results[attribute] = [state.value(name) for name in output_names(graph)]
            tracked.append([state.tracked(name) for name in output_names(graph)])
        for name, *known in zip(context.node.output, *tracked, strict=False):
            outer.track(name, reduce(Tracked.join, known))
        if len(results) == 1:
            return next(iter(results.values()))
        then, other = results["then_branch"], results["else_branch"]
        inlining = inlining_of(context, then, other) if inlines else None
        if inlining is not None:
            raise BranchConflict(context, inlining)
        return [join(a, b) for a, b in zip(then, other, strict=True)]
