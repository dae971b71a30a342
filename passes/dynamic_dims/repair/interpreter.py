"""The abstract interpreter: it evaluates a model's nodes in order, from the inputs on, and repairs each on the way.

The value of a tensor is its type, dims and small elements under each sample assignment of the symbols (`domain`). Each
node is evaluated by `node_evaluation`; this module enters sub-graphs and local functions, and leaves the traversal of
a body to the rewrite driver, which puts in what repair rules wrote. A conflict ends the interpretation, and `search`
starts another one under other hypotheses on a fresh copy of the model.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from itertools import count

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import (
    FunctionKey,
    called,
    fed_inputs,
    function_key,
    initializer_names,
    names_read,
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
from .control_flow.loop_bodies import iteration_of
from .coverage import Coverage
from .domain import Assignments, Dim, Dims, Value
from .domain.value import (
    join,
    value_of_body_input,
    value_of_constant,
    value_of_input,
    value_of_sparse,
    value_of_tensor,
)
from .graph_state import GraphState, LoopState
from .hypotheses import Hypotheses
from .node_context import BatchMerged, NodeContext, UnrepairableNode
from .node_evaluation import evaluate, record_emitted, removed_batch

__all__ = ["Interpreter"]


class Interpreter:
    """One interpretation of a model, which is edited in place, under the hypotheses chosen so far.

    `run` raises UnrepairableNode at the first node in conflict: BatchMixed unless the node's label is in
    `tolerated`, LoopStateConflict unless the state is among `expanded_states`, whose initial values are expanded, and
    BranchConflict unless the If's label is in `kept_branches`.
    """

    def __init__(
        self,
        model: Model,
        assignments: Assignments,
        hypotheses: Hypotheses,
        log: ChangeLog,
        pass_name: str,
        tolerated: Set[str] = frozenset(),
        expanded_states: Collection[tuple[LoopState, int, Dim]] = (),
        kept_branches: Set[str] = frozenset(),
    ) -> None:
        proto = model.proto
        self.log = log
        self.pass_name = pass_name
        self.coverage = Coverage(assignments)
        """How many nodes were interpreted, and how many of them depend on each symbol."""
        self.batch_removers: list[NodeContext] = []
        """The nodes that removed the batch axis, and were made Reshapes that merge it with its neighbour."""
        self.outputs: dict[str, Dims | None] = {}
        """The dims of the graph's outputs, after `run`."""
        self._tolerated = tolerated
        self._expanded_states = expanded_states
        self._kept_branches = kept_branches
        self._model = model
        self._assignments = assignments
        self._hypotheses = hypotheses
        self._ir_version = int(proto.ir_version)
        self._outputs = set(output_names(proto.graph))
        self._output_contexts: dict[str, NodeContext] = {}
        self._imports = {entry.domain: entry.version for entry in proto.opset_import}
        self._main, *inner = scopes(proto, model.weights, result_ir_version=proto.ir_version)
        self._functions: dict[FunctionKey, tuple[onnx.FunctionProto, Scope]] = {
            function_key(function): (function, scope)
            for function, scope in zip(proto.functions, inner, strict=True)
        }

    def run(self) -> None:
        """Interpret and repair the main graph and what it calls. Raises UnrepairableNode."""
        graph = self._model.proto.graph
        inputs = {value.name: value_of_input(value, self._assignments) for value in fed_inputs(graph)}
        state = self._interpret_body(graph, self._main, inputs, None, self._imports)
        self.outputs = {name: state.value(name).dims for name in self._outputs}
        symbols = set(self._assignments.sizes.values())
        for name, context in sorted(self._output_contexts.items()):
            for axis, dim in enumerate(state.value(name).dims or ()):
                if dim is not None and dim.sizes not in symbols and self._assignments.carries_batch(dim):
                    raise BatchMerged(
                        context,
                        f"axis {axis} of output {name!r} would be {self._assignments.text(dim)}: the batch would be"
                        " merged with another axis, and the items of a batch could not be separated",
                    )

    def _interpret_body(
        self,
        graph: onnx.GraphProto | onnx.FunctionProto,
        scope: Scope,
        inputs: Mapping[str, Value],
        parent: GraphState | None,
        imports: Mapping[str, int],
        loop_states: Mapping[str, LoopState] | None = None,
    ) -> GraphState:
        state = self._state_before(graph, scope, inputs, parent, loop_states or {})
        Driver(_BodyVisitor(self, state, imports)).body(scope, _onnx_opset(imports))
        return state

    def interpret(
        self, node: onnx.NodeProto, index: int, state: GraphState, imports: Mapping[str, int]
    ) -> Rewriter | None:
        """Repair the node number `index` of a body and record its outputs' values; return None if nothing was edited.

        Raises UnrepairableNode.
        """
        context = self._context(node, state, imports)
        outputs = self._interpret_node(context, index, imports)
        for name, value in zip(node.output, outputs, strict=False):
            if name:
                state.record(name, value)
        self.coverage.count(outputs)
        if state.scope is self._main:
            self._output_contexts.update({name: context for name in node.output if name in self._outputs})
        return context.rw if context.rw.edited else None

    def _state_before(
        self,
        graph: onnx.GraphProto | onnx.FunctionProto,
        scope: Scope,
        inputs: Mapping[str, Value],
        parent: GraphState | None,
        loop_states: Mapping[str, LoopState],
    ) -> GraphState:
        """Return the state of a body before its first node: its inputs and initializers."""
        known = initializer_names(graph) if isinstance(graph, onnx.GraphProto) else ()
        state = GraphState(
            scope,
            self._assignments,
            parent,
            producers=producers(graph),
            initializers=frozenset(known),
            loop_states=loop_states,
        )
        for node in graph.node:
            for name in dict.fromkeys(names_read(node)) if any(subgraphs(node)) else node.input:
                state.consumers.setdefault(name, []).append(node)
        for name, value in inputs.items():
            state.record(name, value)
        if isinstance(graph, onnx.GraphProto):
            for tensor in graph.initializer:
                if tensor.name not in state.values:
                    state.values[tensor.name] = value_of_tensor(
                        tensor, self._model.weights, self._assignments
                    )
            for sparse in graph.sparse_initializer:
                state.values[sparse.values.name] = value_of_sparse(sparse, self._assignments)
        return state

    def _context(self, node: onnx.NodeProto, state: GraphState, imports: Mapping[str, int]) -> NodeContext:
        version = _onnx_opset(imports)
        name = node.name or next((output for output in node.output if output), "")
        where = Where(scope=state.scope.path, node=name, operator=node.op_type)
        rw = Rewriter(node, state.scope, version, version, where)
        inputs = [state.value(name) if name else None for name in node.input]
        return NodeContext(node, rw, state, inputs, self._hypotheses, where)

    def _interpret_node(self, context: NodeContext, index: int, imports: Mapping[str, int]) -> list[Value]:
        """Repair one node and return the values of its outputs. Raises UnrepairableNode."""
        node = context.node
        self.coverage.visited += 1
        if node.op_type == "Constant" and is_onnx(node.domain):
            return [
                value_of_constant(node, context.graph_state.scope, self._model.weights, self._assignments)
            ]
        key = called(node)
        if key in self._functions:
            return self._interpret_call(context, *self._functions[key])
        graphs = list(subgraphs(node))
        if graphs:
            return self._interpret_subgraphs(context, index, graphs, imports)
        outputs = evaluate(context, imports, self._ir_version, self._tolerated)
        if removed_batch(context):
            self.batch_removers.append(context)
        return outputs

    def _interpret_call(
        self, context: NodeContext, function: onnx.FunctionProto, scope: Scope
    ) -> list[Value]:
        """Interpret the body of a local function with the values of one call, and repair it for all calls."""
        imports = {entry.domain: entry.version for entry in function.opset_import}
        pairs = zip(function.input, context.inputs, strict=False)
        inputs = {name: value for name, value in pairs if value is not None}
        state = self._interpret_body(function, scope, inputs, None, imports)
        return [state.value(name) for name in function.output]

    def _interpret_subgraphs(
        self,
        context: NodeContext,
        index: int,
        graphs: list[tuple[str, int, onnx.GraphProto]],
        imports: Mapping[str, int],
    ) -> list[Value]:
        """Interpret the sub-graphs of an If, Loop, Scan or foreign node; an If's outputs join those of its branches."""
        if context.node.op_type == "If" and is_onnx(context.node.domain) and len(graphs) == 2:
            return self._interpret_branches(context, index, graphs, imports)
        results: list[list[Value]] = []
        for attribute, number, graph in graphs:
            scope = context.graph_state.scope.inner(context.node, index, attribute, number, graph)
            inputs = {value.name: value_of_body_input(value) for value in graph.input}
            iteration = iteration_of(context, graph)
            loop_states: Mapping[str, LoopState] = {}
            if iteration is not None:
                inputs |= iteration.body_inputs(self._expanded_states)
                loop_states = iteration.loop_states()
                record_emitted(context, imports, self._ir_version)
            state = self._interpret_body(graph, scope, inputs, context.graph_state, imports, loop_states)
            results.append([state.value(name) for name in output_names(graph)])
            if iteration is not None:
                return iteration.outputs(results[0])
        return [Value() for _ in context.node.output]

    def _interpret_branches(
        self,
        context: NodeContext,
        index: int,
        graphs: list[tuple[str, int, onnx.GraphProto]],
        imports: Mapping[str, int],
    ) -> list[Value]:
        """Interpret both branches of an If. One that a known condition never takes is left as it is if it conflicts."""
        inlines = context.label not in self._kept_branches
        taken = branch_taken(context.input(0))
        results: dict[str, list[Value]] = {}
        for attribute, number, graph in graphs:
            untouched = onnx.GraphProto()
            untouched.CopyFrom(graph)
            scope = context.graph_state.scope.inner(context.node, index, attribute, number, graph)
            try:
                state = self._interpret_body(graph, scope, {}, context.graph_state, imports)
            except UnrepairableNode as error:
                frozen = branch_of_length(context) if inlines else None
                if frozen is not None:
                    raise BranchConflict(context, frozen) from error
                if taken in (None, attribute):
                    raise
                graph.CopyFrom(untouched)
                continue
            results[attribute] = [state.value(name) for name in output_names(graph)]
        if len(results) == 1:
            return next(iter(results.values()))
        then, other = results["then_branch"], results["else_branch"]
        inlining = inlining_of(context, then, other) if inlines else None
        if inlining is not None:
            raise BranchConflict(context, inlining)
        return [join(a, b) for a, b in zip(then, other, strict=True)]


class _BodyVisitor(Visitor):
    """Interprets the nodes of one body in order, while the driver puts in the nodes that repair rules wrote."""

    # The inputs of a Loop's or Scan's body follow from those of its node, so `interpret` opens the body.
    opens_subgraphs = True

    def __init__(self, interpreter: Interpreter, state: GraphState, imports: Mapping[str, int]) -> None:
        self.log, self.pass_name = interpreter.log, interpreter.pass_name
        self._interpreter, self._state, self._imports = interpreter, state, imports
        self._indices = count()

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int:
        """Return `opset`: every node is interpreted."""
        return opset

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        """Interpret and repair a node. Raises UnrepairableNode."""
        return self._interpreter.interpret(node, next(self._indices), self._state, self._imports)


def _onnx_opset(imports: Mapping[str, int]) -> int:
    return imports.get("", imports.get("ai.onnx", 1))
