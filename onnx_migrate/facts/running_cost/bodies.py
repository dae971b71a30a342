"""Walks the bodies of a model in the order in which they run, and adds up the cost of their nodes.

The walk visits each node a bounded number of times. It looks up the cost of a function call with the same arguments. Of
a loop it visits the first rounds and the last one.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.running_cost.node_reading import Node, bound_attributes
from onnx_migrate.facts.running_cost.operations import operations
from onnx_migrate.facts.running_cost.plain_nodes import constant_of, of_tensor, plain_outputs
from onnx_migrate.facts.running_cost.rounds import Round, Rounds
from onnx_migrate.facts.running_cost.tally import Largest, Tally, seconds_of
from onnx_migrate.facts.running_cost.value_estimate import ValueEstimate
from onnx_migrate.model.graphs import (
    FunctionKey,
    called,
    function_key,
    names_read,
    node_label,
    subgraphs,
)
from onnx_migrate.standard.schema import is_onnx

__all__ = ["Bodies", "Exhausted"]

Env = ChainMap[str, ValueEstimate]
"""The estimates of the values that a body sees, by name."""

_UNKNOWN, _CONSTANT = ValueEstimate(), ValueEstimate(constant=True)

_Values = list[ValueEstimate]
_Inputs = Sequence[ValueEstimate | None]
"""The estimates of a node's inputs, in their order; None for an omitted input."""

_MOST_LOOKS = 50_000
"""Visits of nodes after which the estimate ends; that many visits need a second or two."""


class Exhausted(Exception):
    """The walk visited enough nodes, or a value is too large for any machine."""


@dataclass(frozen=True)
class Frame:
    """The state of the walk in one body: the values that it sees, and the tally of its nodes.

    In the body of a function, `bindings` are the attributes of the call.
    """

    env: Env
    tally: Tally
    bindings: Mapping[str, Any] = field(default_factory=dict)

    def inputs(self, node: onnx.NodeProto) -> _Inputs:
        """Return the estimates of the inputs of a node."""
        return [self.env.get(name, _UNKNOWN) if name else None for name in node.input]

    def inner(self, values: Mapping[str, ValueEstimate] | None = None) -> Frame:
        """Return the frame of a sub-graph with a tally of its own; `values` are those of its inputs."""
        return replace(self, env=self.env.new_child(dict(values or {})), tally=Tally())


@dataclass
class Bodies:
    """The functions of a model, the sizes that onnx's inference found, and the counts so far."""

    functions: Mapping[FunctionKey, onnx.FunctionProto]
    infer: Callable[[], Mapping[str, ValueEstimate]]
    """Returns the estimates from onnx's inference, by value name. The walk calls it if an operator has no rule of its own."""
    most_bytes: int
    """The most bytes that a value can have in memory; the walk ends at a larger one."""
    _looks: int = 0
    _calls: dict[object, tuple[Tally, _Values]] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    """The cost of the main graph, as far as the walk has come."""

    @cached_property
    def _inferred(self) -> Mapping[str, ValueEstimate]:
        return self.infer()

    def main(
        self, graph: onnx.GraphProto, env: Env, overridden: Mapping[str, ValueEstimate]
    ) -> list[ValueEstimate]:
        """Walk the main graph, whose inputs are in `env`; initializers that a caller overrides are `overridden`."""
        return self._graph(graph, Frame(env, self.tally), overridden)

    def _graph(
        self, body: onnx.GraphProto, frame: Frame, overridden: Mapping[str, ValueEstimate] | None = None
    ) -> _Values:
        """Walk a graph whose inputs are in the frame; return its outputs."""
        env = frame.env
        for tensor in body.initializer:
            env[tensor.name] = of_tensor(tensor)
        for sparse in body.sparse_initializer:
            env[sparse.values.name] = ValueEstimate(
                tuple(sparse.dims), sparse.values.data_type, constant=True
            )
        # The caller's values replace the stored defaults.
        env.update(overridden or {})
        self._nodes(body.node, frame)
        return [env.get(value.name, _UNKNOWN) for value in body.output]

    def _nodes(self, nodes: Iterable[onnx.NodeProto], frame: Frame) -> None:
        tally = frame.tally
        for node in nodes:
            self._looks += 1
            # Nested loops of constant counts may have more steps than time allows.
            if self._looks > _MOST_LOOKS:
                raise Exhausted
            outputs = self._outputs(node, frame.inputs(node), frame)
            for name, value in zip(node.output, outputs, strict=False):
                if name:
                    frame.env[name] = value
            # The estimate is beyond the limit already, so the rest does not matter.
            if tally.value.bytes > self.most_bytes or tally.endless:
                if tally is not self.tally:
                    # The cost so far must not be lost.
                    self.tally.add(tally)
                raise Exhausted

    def _outputs(self, node: onnx.NodeProto, inputs: _Inputs, frame: Frame) -> _Values:
        """Add a node to the tally, and return the estimates of its outputs."""
        function = self.functions.get(called(node))
        if function is not None:
            return self._call(function, node, inputs, frame)
        is_standard = is_onnx(node.domain)
        if is_standard and node.op_type == "If":
            return self._branches(node, inputs, frame)
        if is_standard and node.op_type in ("Loop", "Scan"):
            return self._loop(node, inputs, frame)
        if is_standard and node.op_type == "Constant":
            return [constant_of(node, bound_attributes(node, frame.bindings))]
        return self._plain(node, inputs, frame)

    def _plain(self, node: onnx.NodeProto, inputs: _Inputs, frame: Frame) -> _Values:
        count, operation_count = len(node.output), 0
        # A node without varying inputs computes the same in each run.
        constant = all(value.constant for value in inputs if value is not None)
        outputs = [_CONSTANT if constant else _UNKNOWN] * count
        if is_onnx(node.domain):
            attributes = bound_attributes(node, frame.bindings) if node.attribute else {}
            reading = Node(node.op_type, inputs, count, attributes)
            outputs = plain_outputs(reading, constant=constant)
            operation_count = operations(reading, outputs[0].dims) if outputs else 0
        outputs = [
            self._with_inferred(name, value) for name, value in zip(node.output, outputs, strict=False)
        ]
        _count(node, inputs, outputs, operation_count, frame.tally)
        return outputs

    def _with_inferred(self, name: str, value: ValueEstimate) -> ValueEstimate:
        """Return a value with the facts that onnx's inference found, for those that no rule gives."""
        inferred = self._inferred.get(name) if value.dims is None and value.items is None else None
        return value if inferred is None else replace(inferred, constant=value.constant)

    def _call(
        self,
        function: onnx.FunctionProto,
        node: onnx.NodeProto,
        inputs: _Inputs,
        frame: Frame,
    ) -> _Values:
        attributes = {
            default.name: onnx.helper.get_attribute_value(default) for default in function.attribute_proto
        }
        attributes.update(bound_attributes(node, frame.bindings))
        # A call with the same inputs and attributes costs the same, so each is walked once.
        key = (function_key(function), tuple(inputs), repr(sorted(attributes.items())))
        if key not in self._calls:
            env: Env = ChainMap({
                name: value for name, value in zip(function.input, inputs, strict=False) if value is not None
            })  # fmt: skip
            inside = Tally()
            # A function sees only its inputs, not the values around the call.
            self._nodes(function.node, Frame(env, inside, attributes))
            self._calls[key] = inside, [env.get(name, _UNKNOWN) for name in function.output]
        inside, outputs = self._calls[key]
        frame.tally.add(inside)
        return outputs

    def _branches(self, node: onnx.NodeProto, inputs: _Inputs, frame: Frame) -> _Values:
        """Walk the branch of an If that its condition chooses, or both: the dearer one counts."""
        condition = inputs[0].values if inputs and inputs[0] is not None else None
        chosen = None if condition is None else "then_branch" if condition.all() else "else_branch"
        bodies = [(body, frame.inner()) for name, _, body in subgraphs(node) if chosen in (None, name)]
        results = [self._graph(body, inside) for body, inside in bodies]
        if len(bodies) == 2:
            # Only one branch runs, and the condition is open, so the dearer one counts.
            frame.tally.add_either(*(inside.tally for _, inside in bodies))
            return [
                then_value if then_value == other else _UNKNOWN
                for then_value, other in zip(*results, strict=False)
            ]
        if not bodies:
            return []
        frame.tally.add(bodies[0][1].tally)
        return results[0]

    def _loop(self, node: onnx.NodeProto, inputs: _Inputs, frame: Frame) -> _Values:
        body = next((graph for _, _, graph in subgraphs(node)), None)
        if body is None:
            return []
        names = [value.name for value in body.input]

        def walk(values: Sequence[ValueEstimate]) -> Round:
            inside = frame.inner(dict(zip(names, values, strict=False)))
            return Round(inside.tally, self._graph(body, inside))

        make = Rounds.of_loop if node.op_type == "Loop" else Rounds.of_scan
        attributes = bound_attributes(node, frame.bindings)
        rounds = make(walk, inputs, attributes, f"{node.op_type} {node_label(node)!r}")
        counter = names[0] if names else ""
        # A body that reads the counter computes something else in each round.
        rounds.reads_counter = any(counter in names_read(inner) for inner in body.node)
        outputs = rounds.run(frame.tally)
        written = [
            self._with_inferred(name, value) for name, value in zip(node.output, outputs, strict=False)
        ]
        _count(node, (), written, 0, frame.tally)
        return written


def _count(node: onnx.NodeProto, inputs: _Inputs, outputs: _Values, taken: int, tally: Tally) -> None:
    """Add a node with this number of operations to the tally."""
    sizes = [value.bytes for value in outputs]
    # A node costs at least the bytes that it writes.
    written = sum(sizes)
    tally.work.add_node(taken, written)
    if outputs and outputs[0].constant:
        tally.of_constants.add_node(taken, written)
    if written > tally.value.bytes:
        size, name = max(zip(sizes, node.output, strict=False))
        tally.value = max(tally.value, Largest(size, name))
    # A value that is read twice exists once.
    at_once = written + sum({id(value): value.bytes for value in inputs if value is not None}.values())
    if at_once > tally.node.bytes:
        tally.node = Largest(at_once, f"{node.op_type} {node_label(node)!r} reads and writes")
    seconds = seconds_of(taken, written)
    if seconds > tally.costliest[0]:
        tally.costliest = seconds, f"{node.op_type} {node_label(node)!r}"
