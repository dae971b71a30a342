"""Walks a model from its inputs, mending each node before what comes behind it is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Set
from itertools import chain

import onnx

from onnx_migrate.analysis.scope import Scope, scopes
from onnx_migrate.analysis.shape_arithmetic import LARGEST
from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import FunctionKey, called, fed_inputs, function_key, names_read, subgraphs
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import Change
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.schema import is_onnx

from .conflicts import batch_mixing, broadcast_conflict, operand_conflict
from .domain import Array, Assignments, Dim, Dims, Value
from .graph_state import GraphState, LoopState
from .hypotheses import Hypotheses
from .loop_bodies import iteration_of, join
from .node_context import BatchMerged, BatchMixed, NodeContext, UnrepairableNode
from .node_inference import ShapeConflict, infer
from .rules.squeezed_batch import BATCH_REMOVERS
from .rules.table import APPLIED_TO_CONSTANTS, RULES

__all__ = ["Interpreter"]


class Interpreter:
    """One walk over a model, which is edited in place, under the meanings assumed in `choices`.

    Raises BlockedError from `run` at a node that cannot be mended, MixedError at one where items of a batch meet
    unless it gives one of the values `tolerated`, StateError for a state that must begin with the batch, which those
    `widened` are made to.
    """

    def __init__(
        self,
        model: Model,
        assignments: Assignments,
        hypotheses: Hypotheses,
        pass_name: str,
        tolerated: Set[str] = frozenset(),
        expanded_states: Collection[tuple[LoopState, int, Dim]] = (),
    ) -> None:
        self.changes: list[Change] = []
        self._tolerated = tolerated
        self._expanded_states = expanded_states
        self._model = model
        self._assignments = assignments
        self._hypotheses = hypotheses
        self._pass_name = pass_name
        self._outputs = {value.name for value in model.proto.graph.output}
        self._output_contexts: dict[str, NodeContext] = {}
        self.visited = 0
        """How many nodes were walked over."""
        self.varying = 0
        """How many of them give what moves with something else than the batch."""
        self.symbol_use: Counter[str] = Counter()
        """How many of them give what has a symbol for an axis, or laid into one."""
        self.batch_removers: list[NodeContext] = []
        """Nodes that took the batch away, and now lay it with another axis."""
        self.outputs: dict[str, Dims | None] = {}
        """The dims of the graph's outputs, once it is walked."""
        proto = model.proto
        self._functions: dict[FunctionKey, tuple[onnx.FunctionProto, Scope]] = {}
        found = scopes(proto, model.weights, result_ir_version=proto.ir_version)
        for function, scope in zip(proto.functions, found[1:], strict=True):
            self._functions[function_key(function)] = function, scope
        self._main = found[0]
        self._imports = {entry.domain: entry.version for entry in proto.opset_import}

    def run(self) -> None:
        """Walk the main graph and what it calls."""
        proto = self._model.proto
        inputs = {value.name: self._input_value(value) for value in fed_inputs(proto.graph)}
        graph_state = self._interpret_body(proto.graph, self._main, inputs, None, self._imports)
        self.outputs = {name: graph_state.value(name).dims for name in self._outputs}
        for name in sorted(self._output_contexts):
            context = self._output_contexts[name]
            for dim in graph_state.value(name).dims or ():
                if dim is None or dim.sizes in self._assignments.sizes.values():
                    continue
                if self._assignments.carries_batch(dim):
                    raise BatchMerged(context, f"it lays the batch with another axis of output {name!r}")

    def _count_symbols(self, outputs: list[Value]) -> None:
        sizes = {
            factor.sizes
            for value in outputs
            for dim in value.dims or ()
            if dim is not None
            for factor in (dim, *dim.flat_factors())
        }
        self.symbol_use.update(symbol for symbol, own in self._assignments.sizes.items() if own in sizes)

    def _varies_without_batch(self, value: Value) -> bool:
        return any(
            dim is not None and dim.sizes[0] == dim.sizes[3] != dim.sizes[1] for dim in value.dims or ()
        )

    def _input_value(self, value: onnx.ValueInfoProto) -> Value:
        kind = value.type
        if kind.WhichOneof("value") != "tensor_type":
            return Value(types=(kind,) * self._assignments.count)
        tensor = kind.tensor_type
        if not tensor.HasField("shape"):
            return Value(tensor.elem_type)
        dims: list[Dim | None] = []
        for dim in tensor.shape.dim:
            if dim.dim_param in self._assignments.sizes:
                dims.append(Dim(self._assignments.sizes[dim.dim_param]))
            else:
                dims.append(self._assignments.fixed(dim.dim_value) if dim.HasField("dim_value") else None)
        return Value(tensor.elem_type, tuple(dims))

    def _interpret_body(
        self,
        graph: onnx.GraphProto | onnx.FunctionProto,
        scope: Scope,
        inputs: Mapping[str, Value],
        parent: GraphState | None,
        imports: Mapping[str, int],
        loop_states: Mapping[str, LoopState] | None = None,
    ) -> GraphState:
        graph_state = GraphState(scope, self._assignments, parent, loop_states=loop_states or {})
        for node in graph.node:
            for name in node.output:
                graph_state.producers[name] = node
            for name in dict.fromkeys(names_read(node)) if any(subgraphs(node)) else node.input:
                graph_state.consumers.setdefault(name, []).append(node)
        for name, value in inputs.items():
            graph_state.record(name, value)
        if isinstance(graph, onnx.GraphProto):
            for tensor in graph.initializer:
                if tensor.name not in graph_state.values:
                    graph_state.values[tensor.name] = self._tensor(tensor)
            for sparse in graph.sparse_initializer:
                graph_state.values[sparse.values.name] = Value(
                    sparse.values.data_type, tuple(map(self._assignments.fixed, sparse.dims))
                )
        nodes: list[onnx.NodeProto] = []
        edited = False
        for index, node in enumerate(graph.node):
            context = self._context(node, graph_state, index, imports)
            outputs = self._interpret_node(context, index, imports)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    graph_state.record(name, value)
            self.varying += any(map(self._varies_without_batch, outputs))
            self._count_symbols(outputs)
            if scope is self._main:
                self._output_contexts.update({name: context for name in node.output if name in self._outputs})
            nodes.extend([*context.rw.preceding, node, *context.rw.following])
            if context.before is not None:
                edited = True
                self._record(context)
        if edited or scope.added:
            nodes = list(chain(scope.added, nodes))
            copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(copies)
            scope.added = []
        return graph_state

    def _tensor(self, tensor: onnx.TensorProto) -> Value:
        dims = tuple(map(self._assignments.fixed, tensor.dims))
        size = 1
        for length in tensor.dims:
            size *= length
        if size > LARGEST or tensor.data_type == onnx.TensorProto.STRING:
            return Value(tensor.data_type, dims)
        array = self._model.weights.array(tensor)
        return Value(tensor.data_type, dims, (array,) * self._assignments.count)

    def _context(
        self, node: onnx.NodeProto, graph_state: GraphState, index: int, imports: Mapping[str, int]
    ) -> NodeContext:
        version = imports.get("", imports.get("ai.onnx", 1))
        name = node.name or next((output for output in node.output if output), "")
        where = Where(scope=graph_state.scope.path, node=name, operator=node.op_type)
        rw = Rewriter(node, graph_state.scope, version, version, where)
        inputs = [graph_state.value(name) if name else None for name in node.input]
        return NodeContext(node, rw, graph_state, inputs, self._hypotheses, where)

    def _interpret_node(self, context: NodeContext, index: int, imports: Mapping[str, int]) -> list[Value]:
        node = context.node
        self.visited += 1
        if node.op_type == "Constant" and is_onnx(node.domain):
            return [self._constant(context)]
        key = called(node)
        if key in self._functions:
            return self._call(context, *self._functions[key])
        graphs = list(subgraphs(node))
        if graphs:
            return self._control(context, index, graphs, imports)
        known: list[Value] | None = None
        moving = any(value is not None and (value.varies or value.dims is None) for value in context.inputs)
        if is_onnx(node.domain) and (moving or node.op_type in APPLIED_TO_CONSTANTS):
            rule = RULES.get(node.op_type)
            known = rule(context) if rule is not None else None
            if context.where.operator in BATCH_REMOVERS and node.op_type == "Reshape":
                self.batch_removers.append(context)
            if context.rw.preceding:
                self._infer_emitted(context, imports)
        try:
            outputs = (
                known
                if known is not None
                else infer(node, context.inputs, imports, self._ir, self._assignments)
            )
        except ShapeConflict as error:
            constant = self._suspect(context)
            raise UnrepairableNode(
                context, broadcast_conflict(context) or f"at other sizes {error}", constant
            ) from error
        problem = operand_conflict(context)
        if problem:
            raise UnrepairableNode(context, problem, self._suspect(context))
        mixed = batch_mixing(context, outputs)
        if mixed and context.label not in self._tolerated:
            raise BatchMixed(context, mixed)
        return outputs

    @property
    def _ir(self) -> int:
        return int(self._model.proto.ir_version)

    def _infer_emitted(self, context: NodeContext, imports: Mapping[str, int]) -> None:
        """Know of nodes written before this one what they give, for those that come after it."""
        for node in context.rw.preceding:
            if any(name in context.graph_state.values for name in node.output):
                continue
            inputs = [self._emitted_value(context.graph_state, name) for name in node.input]
            for name, value in zip(
                node.output, infer(node, inputs, imports, self._ir, self._assignments), strict=True
            ):
                context.graph_state.values[name] = value

    def _emitted_value(self, graph_state: GraphState, name: str) -> Value:
        value = graph_state.value(name)
        if value.dtype or value.types:
            return value
        array = graph_state.scope.constant(name)
        if array is None:
            return value
        return self._holding(array)

    def _holding(self, array: Array) -> Value:
        kind = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        return Value(
            kind, tuple(map(self._assignments.fixed, array.shape)), (array,) * self._assignments.count
        )

    def _constant(self, context: NodeContext) -> Value:
        node = context.node
        attribute = next((attribute for attribute in node.attribute if attribute.name == "value"), None)
        if attribute is not None and not attribute.ref_attr_name:
            return self._tensor(attribute.t)
        array = context.graph_state.scope.constant(node.output[0])
        if array is None:
            return Value()
        return self._holding(array)

    def _call(self, context: NodeContext, function: onnx.FunctionProto, scope: Scope) -> list[Value]:
        imports = {entry.domain: entry.version for entry in function.opset_import}
        inputs = {
            name: value
            for name, value in zip(function.input, context.inputs, strict=False)
            if value is not None
        }
        graph_state = self._interpret_body(function, scope, inputs, None, imports)
        return [graph_state.value(name) for name in function.output]

    def _control(
        self,
        context: NodeContext,
        index: int,
        graphs: list[tuple[str, int, onnx.GraphProto]],
        imports: Mapping[str, int],
    ) -> list[Value]:
        results: list[list[Value]] = []
        for attribute, number, graph in graphs:
            scope = context.graph_state.scope.inner(context.node, index, attribute, number, graph)
            inputs = {value.name: self._body_input(value) for value in graph.input}
            iteration = iteration_of(context, graph)
            if iteration is not None:
                inputs |= iteration.body_inputs(self._expanded_states)
                self._infer_emitted(context, imports)
            graph_state = self._interpret_body(
                graph,
                scope,
                inputs,
                context.graph_state,
                imports,
                iteration.loop_states() if iteration else {},
            )
            results.append([graph_state.value(value.name) for value in graph.output])
            if iteration is not None:
                return iteration.outputs(results[0])
        if context.node.op_type == "If" and is_onnx(context.node.domain) and len(results) == 2:
            return [join(a, b) for a, b in zip(*results, strict=True)]
        return [Value() for _ in context.node.output]

    def _body_input(self, value: onnx.ValueInfoProto) -> Value:
        tensor = value.type.tensor_type
        return Value(tensor.elem_type) if value.type.WhichOneof("value") == "tensor_type" else Value()

    def _suspect(self, context: NodeContext) -> str:
        """Return the input that holds the node fast: a constant, or what is computed from constants alone."""
        for name, value in zip(context.node.input, context.inputs, strict=False):
            if value is not None and value.dims is not None and not value.varies:
                return name
        return ""

    def _record(self, context: NodeContext) -> None:
        version = context.rw.version
        self.changes.append(
            Change(
                self._pass_name,
                context.where,
                context.before or b"",
                version,
                context.node.SerializeToString(deterministic=True),
                version,
                tuple(node.op_type for node in context.rw.preceding),
                "; ".join(context.reasons),
                context.exactness,
                serialised_helpers=tuple(
                    node.SerializeToString(deterministic=True) for node in context.rw.preceding
                ),
                serialised_constants=constant_summaries(
                    context.rw.scope,
                    chain(
                        onnx.NodeProto.FromString(context.before or b"").input,
                        context.node.input,
                        *(node.input for node in context.rw.preceding),
                    ),
                ),
            )
        )
