"""Walks a model from its inputs, mending each node before what comes behind it is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Set
from itertools import chain

import onnx

from onnx_migrate.analysis.scope import Scope, scopes
from onnx_migrate.analysis.shape_arithmetic import LARGEST
from onnx_migrate.errors import Where
from onnx_migrate.model.graphs import FunctionKey, called, function_key, subgraphs
from onnx_migrate.model.model import Model
from onnx_migrate.model.toposort import free_names
from onnx_migrate.rewrite.change_log import Change
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.rewrite.rewriter import Rewriter
from onnx_migrate.spec.schema import is_onnx

from .conflicts import contradiction, misfit, mixture
from .domain import Array, Dim, Dims, Value, Worlds
from .graph_state import Body, State
from .hypotheses import Choices
from .loop_bodies import common, rounds
from .node_context import BlockedError, LaidError, MixedError, Place
from .node_inference import DisagreementError, infer
from .rules.squeezed_batch import TAKERS
from .rules.table import MENDERS, OF_CONSTANTS

__all__ = ["Walk"]


class Walk:
    """One walk over a model, which is edited in place, under the meanings assumed in `choices`.

    Raises BlockedError from `run` at a node that cannot be mended, MixedError at one where items of a batch meet
    unless it gives one of the values `tolerated`, StateError for a state that must begin with the batch, which those
    `widened` are made to.
    """

    def __init__(
        self,
        model: Model,
        worlds: Worlds,
        choices: Choices,
        pass_name: str,
        tolerated: Set[str] = frozenset(),
        widened: Collection[tuple[State, int, Dim]] = (),
    ) -> None:
        self.changes: list[Change] = []
        self._tolerated = tolerated
        self._widened = widened
        self._model = model
        self._worlds = worlds
        self._choices = choices
        self._pass_name = pass_name
        self._outputs = {value.name for value in model.proto.graph.output}
        self._last: dict[str, Place] = {}
        self.visited = 0
        """How many nodes were walked over."""
        self.moved = 0
        """How many of them give what moves with something else than the batch."""
        self.flow: Counter[str] = Counter()
        """How many of them give what has a symbol for an axis, or laid into one."""
        self.takers: list[Place] = []
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
        given: dict[str, Value] = {}
        initialised = {tensor.name for tensor in proto.graph.initializer}
        for value in proto.graph.input:
            if value.name not in initialised:
                given[value.name] = self._declared(value)
        body = self._walk(proto.graph, self._main, given, None, self._imports)
        self.outputs = {name: body.value(name).dims for name in self._outputs}
        for name in sorted(self._last):
            place = self._last[name]
            for dim in body.value(name).dims or ():
                if dim is None or dim.sizes in self._worlds.sizes.values():
                    continue
                if self._worlds.carries_batch(dim):
                    raise LaidError(place, f"it lays the batch with another axis of output {name!r}")

    def _follow(self, outputs: list[Value]) -> None:
        sizes = {
            leaf.sizes
            for value in outputs
            for dim in value.dims or ()
            if dim is not None
            for leaf in (dim, *dim.leaves())
        }
        self.flow.update(symbol for symbol, own in self._worlds.sizes.items() if own in sizes)

    def _moves(self, value: Value) -> bool:
        return any(
            dim is not None and dim.sizes[0] == dim.sizes[3] != dim.sizes[1] for dim in value.dims or ()
        )

    def _declared(self, value: onnx.ValueInfoProto) -> Value:
        kind = value.type
        if kind.WhichOneof("value") != "tensor_type":
            return Value(types=(kind,) * self._worlds.count)
        tensor = kind.tensor_type
        if not tensor.HasField("shape"):
            return Value(tensor.elem_type)
        dims: list[Dim | None] = []
        for dim in tensor.shape.dim:
            if dim.dim_param in self._worlds.sizes:
                dims.append(Dim(self._worlds.sizes[dim.dim_param]))
            else:
                dims.append(self._worlds.fixed(dim.dim_value) if dim.HasField("dim_value") else None)
        return Value(tensor.elem_type, tuple(dims))

    def _walk(
        self,
        graph: onnx.GraphProto | onnx.FunctionProto,
        scope: Scope,
        given: Mapping[str, Value],
        parent: Body | None,
        imports: Mapping[str, int],
        carried: Mapping[str, State] | None = None,
    ) -> Body:
        body = Body(scope, self._worlds, parent, carried=carried or {})
        for node in graph.node:
            for name in node.output:
                body.makers[name] = node
            for name in dict.fromkeys(free_names(node)) if any(subgraphs(node)) else node.input:
                body.readers.setdefault(name, []).append(node)
        for name, value in given.items():
            body.learn(name, value)
        if isinstance(graph, onnx.GraphProto):
            for tensor in graph.initializer:
                if tensor.name not in body.values:
                    body.values[tensor.name] = self._tensor(tensor)
            for sparse in graph.sparse_initializer:
                body.values[sparse.values.name] = Value(
                    sparse.values.data_type, tuple(map(self._worlds.fixed, sparse.dims))
                )
        nodes: list[onnx.NodeProto] = []
        edited = False
        for index, node in enumerate(graph.node):
            place = self._place(node, body, index, imports)
            outputs = self._visit(place, index, imports)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    body.learn(name, value)
            self.moved += any(map(self._moves, outputs))
            self._follow(outputs)
            if scope is self._main:
                self._last.update({name: place for name in node.output if name in self._outputs})
            nodes.extend([*place.rw.preceding, node, *place.rw.following])
            if place.before is not None:
                edited = True
                self._record(place)
        if edited or scope.added:
            nodes = list(chain(scope.added, nodes))
            copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del graph.node[:]
            graph.node.extend(copies)
            scope.added = []
        return body

    def _tensor(self, tensor: onnx.TensorProto) -> Value:
        dims = tuple(map(self._worlds.fixed, tensor.dims))
        size = 1
        for length in tensor.dims:
            size *= length
        if size > LARGEST or tensor.data_type == onnx.TensorProto.STRING:
            return Value(tensor.data_type, dims)
        array = self._model.weights.array(tensor)
        return Value(tensor.data_type, dims, (array,) * self._worlds.count)

    def _place(self, node: onnx.NodeProto, body: Body, index: int, imports: Mapping[str, int]) -> Place:
        version = imports.get("", imports.get("ai.onnx", 1))
        name = node.name or next((output for output in node.output if output), "")
        where = Where(scope=body.scope.path, node=name, operator=node.op_type)
        rw = Rewriter(node, body.scope, version, version, where)
        given = [body.value(name) if name else None for name in node.input]
        return Place(node, rw, body, given, self._choices, where)

    def _visit(self, place: Place, index: int, imports: Mapping[str, int]) -> list[Value]:
        node = place.node
        self.visited += 1
        if node.op_type == "Constant" and is_onnx(node.domain):
            return [self._constant(place)]
        key = called(node)
        if key in self._functions:
            return self._call(place, *self._functions[key])
        graphs = list(subgraphs(node))
        if graphs:
            return self._control(place, index, graphs, imports)
        known: list[Value] | None = None
        moving = any(value is not None and (value.varies or value.dims is None) for value in place.given)
        if is_onnx(node.domain) and (moving or node.op_type in OF_CONSTANTS):
            mender = MENDERS.get(node.op_type)
            known = mender(place) if mender is not None else None
            if place.where.operator in TAKERS and node.op_type == "Reshape":
                self.takers.append(place)
            if place.rw.preceding:
                self._learn_written(place, imports)
        try:
            outputs = (
                known if known is not None else infer(node, place.given, imports, self._ir, self._worlds)
            )
        except DisagreementError as error:
            constant = self._suspect(place)
            raise BlockedError(place, misfit(place) or f"at other sizes {error}", constant) from error
        problem = contradiction(place)
        if problem:
            raise BlockedError(place, problem, self._suspect(place))
        mixed = mixture(place, outputs)
        if mixed and place.label not in self._tolerated:
            raise MixedError(place, mixed)
        return outputs

    @property
    def _ir(self) -> int:
        return int(self._model.proto.ir_version)

    def _learn_written(self, place: Place, imports: Mapping[str, int]) -> None:
        """Know of nodes written before this one what they give, for those that come after it."""
        for node in place.rw.preceding:
            if any(name in place.body.values for name in node.output):
                continue
            given = [self._written(place.body, name) for name in node.input]
            for name, value in zip(
                node.output, infer(node, given, imports, self._ir, self._worlds), strict=True
            ):
                place.body.values[name] = value

    def _written(self, body: Body, name: str) -> Value:
        value = body.value(name)
        if value.dtype or value.types:
            return value
        array = body.scope.constant(name)
        if array is None:
            return value
        return self._holding(array)

    def _holding(self, array: Array) -> Value:
        kind = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
        return Value(kind, tuple(map(self._worlds.fixed, array.shape)), (array,) * self._worlds.count)

    def _constant(self, place: Place) -> Value:
        node = place.node
        held = next((attribute for attribute in node.attribute if attribute.name == "value"), None)
        if held is not None and not held.ref_attr_name:
            return self._tensor(held.t)
        array = place.body.scope.constant(node.output[0])
        if array is None:
            return Value()
        return self._holding(array)

    def _call(self, place: Place, function: onnx.FunctionProto, scope: Scope) -> list[Value]:
        imports = {entry.domain: entry.version for entry in function.opset_import}
        given = {
            name: value for name, value in zip(function.input, place.given, strict=False) if value is not None
        }
        body = self._walk(function, scope, given, None, imports)
        return [body.value(name) for name in function.output]

    def _control(
        self,
        place: Place,
        index: int,
        graphs: list[tuple[str, int, onnx.GraphProto]],
        imports: Mapping[str, int],
    ) -> list[Value]:
        results: list[list[Value]] = []
        for attribute, number, graph in graphs:
            scope = place.body.scope.inner(place.node, index, attribute, number, graph)
            given = {value.name: self._inner(value) for value in graph.input}
            turn = rounds(place, graph)
            if turn is not None:
                given |= turn.begin(self._widened)
                self._learn_written(place, imports)
            body = self._walk(graph, scope, given, place.body, imports, turn.carried() if turn else {})
            results.append([body.value(value.name) for value in graph.output])
            if turn is not None:
                return turn.end(results[0])
        if place.node.op_type == "If" and is_onnx(place.node.domain) and len(results) == 2:
            return [common(a, b) for a, b in zip(*results, strict=True)]
        return [Value() for _ in place.node.output]

    def _inner(self, value: onnx.ValueInfoProto) -> Value:
        tensor = value.type.tensor_type
        return Value(tensor.elem_type) if value.type.WhichOneof("value") == "tensor_type" else Value()

    def _suspect(self, place: Place) -> str:
        """Return the input that holds the node fast: a constant, or what is computed from constants alone."""
        for name, value in zip(place.node.input, place.given, strict=False):
            if value is not None and value.dims is not None and not value.varies:
                return name
        return ""

    def _record(self, place: Place) -> None:
        version = place.rw.version
        self.changes.append(
            Change(
                self._pass_name,
                place.where,
                place.before or b"",
                version,
                place.node.SerializeToString(deterministic=True),
                version,
                tuple(node.op_type for node in place.rw.preceding),
                "; ".join(place.reasons),
                place.exactness,
                serialised_helpers=tuple(
                    node.SerializeToString(deterministic=True) for node in place.rw.preceding
                ),
                serialised_constants=constant_summaries(
                    place.rw.scope,
                    chain(
                        onnx.NodeProto.FromString(place.before or b"").input,
                        place.node.input,
                        *(node.input for node in place.rw.preceding),
                    ),
                ),
            )
        )
