"""The evaluation of control flow before run time: it writes the nodes of sub-graphs into the main graph, under new names.

The evaluator holds the elements of sequences and optionals, so that no remaining node makes or reads a sequence or
optional. It computes conditions, trip counts and positions at once if they follow from constants, counters and fixed dims.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.advice import Hint
from onnx_migrate.engine.steps.formula import Op, Value
from onnx_migrate.engine.steps.node_steps import node_name
from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.node_inference import inference_refusal
from onnx_migrate.facts.shape_arithmetic import ELEMENTWISE
from onnx_migrate.facts.value_facts import ValueFacts
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.messages import count_of
from onnx_migrate.model.graphs import nested_nodes, output_names, subgraph_path, subgraphs
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.standard.schema import is_onnx, signature_at

__all__ = [
    "HANDLERS",
    "RANDOM",
    "Bounds",
    "BranchFails",
    "Env",
    "Evaluator",
    "Expansion",
    "Held",
    "OptionalOf",
    "SequenceOf",
    "handles",
]

RANDOM = frozenset(
    ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


@dataclass(frozen=True)
class SequenceOf:
    """The values that a sequence holds."""

    elements: tuple[Held, ...]


@dataclass(frozen=True)
class OptionalOf:
    """The value in the optional, None if it is empty."""

    element: Held | None


Held = str | SequenceOf | OptionalOf
"""A value: the name of a tensor, or the content of a sequence or optional."""

Env = ChainMap[str, Held]
"""The values of the names in a body; a name that it lacks is a value of the main graph."""

Handler = Callable[["Evaluator", onnx.NodeProto, Env], list[Held]]

HANDLERS: dict[str, Handler] = {}
"""The function that evaluates a node of ai.onnx, by its operator."""


def handles(*operators: str) -> Callable[[Handler], Handler]:
    """Register a function that writes the replacement of an operator and returns its outputs; a decorator."""

    def register(function: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(operators, function))
        return function

    return register


@dataclass(frozen=True)
class Bounds:
    """Limits: `nodes` written for one node of the main graph, `extra` multiplications for a branch that never runs."""

    nodes: int
    extra: int


class BranchFails(Exception):
    """A node of a branch fails for all inputs of these sizes. The model then fails whenever it takes the branch."""


_OF_SIZES = ELEMENTWISE | {
    "Concat",
    "Conv",
    "GRU",
    "Gemm",
    "LSTM",
    "MatMul",
    "Pow",
    "RNN",
    "Reshape",
    "Squeeze",
}
"""Operators that runtimes refuse to run at the sizes at which onnx's inference refuses them."""


@dataclass
class Expansion:
    """One node that the pass replaced, for the report."""

    where: Where
    what: str
    written: list[onnx.NodeProto]


class Evaluator:
    """Writes the replacement of one node of the main graph before it, as nodes of the rewriter."""

    def __init__(
        self, rw: LoweringRewriter, facts: ValueFacts, bounds: Bounds, handled: frozenset[str]
    ) -> None:
        self.rw, self.facts, self.bounds, self.handled = rw, facts, bounds, handled
        self.op = Op(rw)
        self.where = rw.where
        self.expansions: list[Expansion] = []
        self.rounds = 0
        """The number of loops around the nodes that are being written."""
        self.guard: Callable[[onnx.NodeProto], None] | None = None
        """Checks or changes a node before it is written, in a branch that the model may not take; None elsewhere."""
        self.guarded: set[str] = set()
        """Inputs of such nodes that were already limited to the range in which the nodes are defined."""

    # Bodies

    def body(
        self, graph: onnx.GraphProto, env: Env, nodes: Iterable[onnx.NodeProto] | None = None
    ) -> list[Held]:
        """Write the nodes of a body, by default all, and return its outputs; `env` gets the values of its names."""
        for node in graph.node if nodes is None else nodes:
            for name, value in zip(node.output, self.evaluate(node, env), strict=False):
                if name:
                    env[name] = value
        return [env.get(name, name) for name in output_names(graph)]

    def evaluate(self, node: onnx.NodeProto, env: Env) -> list[Held]:
        """Write the replacement of a node and return its outputs."""
        if is_onnx(node.domain):
            if node.op_type in self.handled:
                with self._at(node):
                    return HANDLERS[node.op_type](self, node, env)
            if node.op_type == "Identity":
                return [env.get(node.input[0], node.input[0])]
        return list(self._copy(node, env))

    @contextmanager
    def _at(self, node: onnx.NodeProto) -> Iterator[None]:
        """Let errors name this node. The path of an inner node starts with the path of the main graph's node."""
        outer = self.where
        form = signature_at("", node.op_type, self.rw.version)
        self.where = Where(outer.scope, node_name(node), node.op_type, form.since_version if form else None)
        try:
            yield
        finally:
            self.where = outer

    @contextmanager
    def inside(self, node: onnx.NodeProto, attribute: str) -> Iterator[None]:
        """Let refusals say that they are in a sub-graph of a node."""
        outer = self.where
        self.where = outer._replace(scope=subgraph_path(outer.scope, node, attribute, 0))
        try:
            yield
        finally:
            self.where = outer

    def _copy(self, node: onnx.NodeProto, env: Env) -> Iterable[str]:
        # One node draws its numbers once.
        if self.rounds and node.op_type in RANDOM and is_onnx(node.domain):
            with self._at(node):
                self.refuse("copies of it for each round draw other random numbers than the one node")
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        names = self.rw.scope.names
        with self._at(node):
            for index, name in enumerate(node.input):
                copy.input[index] = self.tensor(env, name)
            for index, name in enumerate(node.output):
                copy.output[index] = names.fresh(name) if name else ""
            # A graph inside the copy reads values of the body that the copy has under other names.
            for _, _, graph in subgraphs(copy):
                self._rename(graph, env)
            if copy.name:
                copy.name = names.fresh(copy.name)
            return self._emit(copy)

    def _rename(self, graph: onnx.GraphProto, env: Env) -> None:
        """Rename the values that a remaining sub-graph reads from outside to the ones that replace them."""
        # Names that the graph defines itself hide outer ones.
        own = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
        for node in graph.node:
            for index, name in enumerate(node.input):
                if name not in own:
                    node.input[index] = self.tensor(env, name)
            for _, _, inner in subgraphs(node):
                self._rename(inner, env.new_child({name: name for name in own}))
        for value in graph.output:
            if value.name not in own:
                value.name = self.tensor(env, value.name)

    def _emit(self, node: onnx.NodeProto) -> list[str]:
        """Write a node, unless its outputs are known; return its outputs.

        Floats of more than one element stay computed: ONNX Runtime multiplies by constants, which it packs, in another order.
        """
        rw = self.rw
        if self.guard is not None:
            self.guard(node)
        # The facts need the node in the scope.
        rw.scope.register(node)
        self.facts.refine(node, rw.version)
        self.facts.add(node)
        if self.guard is not None and is_onnx(node.domain) and node.op_type in _OF_SIZES:
            self._check_sizes(node)
        arrays = [self.known(name) if name else None for name in node.output]
        constants = [
            array for array in arrays if array is not None and (array.size == 1 or array.dtype.kind in "iub")
        ]
        if constants and len(constants) == len(arrays) and not node.op_type.startswith("Reduce"):
            return [self.stored(array) for array in constants]
        rw.preceding.append(node)
        # A loop may have thousands of rounds, so the limit applies while they are written.
        if len(rw.preceding) > self.bounds.nodes:
            self.refuse(
                f"it stands for more than {count_of(self.bounds.nodes, 'node')}",
                code="unroll-limit",
                hint="raise --unroll-limit, if the target takes a model of so many nodes",
            )
        return list(node.output)

    def bound_rounds(self, count: int, noun: str) -> None:
        """Refuse more rounds, steps or elements than nodes may be written, before any is: each of them is a node at the least."""
        if count > self.bounds.nodes:
            self.refuse(
                f"it has {count_of(count, noun)}, and {count_of(self.bounds.nodes, 'node')} may be written for it",
                code="unroll-limit",
                hint="raise --unroll-limit, if the target takes a model of so many nodes",
            )

    def _check_sizes(self, node: onnx.NodeProto) -> None:
        """Raise BranchFails for a node that no input of these sizes gets past."""
        if None in map(self.static, filter(None, node.output)) and None not in map(
            self.static, filter(None, node.input)
        ):
            reason = inference_refusal(self.rw.scope, node, self.rw.version)
            if reason is not None and "ShapeInferenceError" in reason:
                raise BranchFails(f"{node.op_type} {node.name or node.output[0]!r} {reason}")

    # Values

    def tensor(self, env: Env, name: str) -> str:
        """Return the tensor that a name stands for, "" for none; refuse a sequence or optional."""
        value = env.get(name, name)
        if not isinstance(value, str):
            kind = "a sequence" if isinstance(value, SequenceOf) else "an optional"
            self.refuse(
                f"it reads {name!r}, {kind}, and has no other input for it",
                code="sequences",
                hint="let it read the tensors themselves",
            )
        return value

    def known(self, name: str) -> np.ndarray[Any, Any] | None:
        """Return the array of a small value that follows from constants, counters and fixed dims, else None."""
        return self.rw.known(name) if name else None

    def number(self, env: Env, name: str) -> int | None:
        """Return a whole number or truth value that is known, None for a value that is computed at run time."""
        array = self.known(self.tensor(env, name))
        return None if array is None or array.size != 1 else int(array.reshape(-1)[0])

    def constant(self, number: int | bool | list[int]) -> str:
        """Return a constant of int64 or bool."""
        array = np.array(number)
        return self.stored(array if array.dtype == np.bool_ else array.astype(np.int64))

    def stored(self, array: np.ndarray[Any, Any]) -> str:
        """Return a constant."""
        name = self.rw.constant(array, "known")
        self.rw.scope.record_type(
            name, ValueType(int(helper.np_dtype_to_tensor_dtype(array.dtype)), array.shape)
        )
        return name

    def static(self, name: str) -> tuple[int, ...] | None:
        """Return a value's shape if all its dims are fixed."""
        return self.value(name).static

    def value(self, name: str) -> Value:
        """Return a value for expressions."""
        return Value(self.op, name)

    def name_of(self, value: Value) -> str:
        """Return the name of a value that was written; of a constant of its own where it is known."""
        name = value.name
        array = self.known(name)
        return name if array is None else self.stored(array)

    def stack(self, elements: list[str], axis: int) -> str:
        """Return the values along a new axis, with an Unsqueeze for each and a Concat, or a Concat and one Reshape.

        An axis is counted from the front.
        """
        op, first = self.op, self.static(elements[0])
        values = [self.value(name) for name in elements]
        alike = first is not None and all(self.static(name) == first for name in elements)
        if len(values) > 2 and axis == 0 and first and alike and 0 not in first:
            joined = op.write("Concat", *values, axis=0)
            return self.name_of(op.Reshape(joined, [len(values), *first]))
        inserted = [op.Unsqueeze(value, [axis]) for value in values]
        named = [self.value(self.name_of(value)) for value in inserted]
        return named[0].name if len(named) == 1 else self.name_of(op.write("Concat", *named, axis=axis))

    def split(self, value: Value, lengths: list[int], axis: int) -> list[Value]:
        """Return the parts of a value along an axis."""
        if not lengths:
            return []
        if self.rw.version >= 13:
            return self.op.several("Split", len(lengths), value, lengths, axis=axis)
        return self.op.several("Split", len(lengths), value, axis=axis, split=lengths)

    # The report

    def expanded(self, what: str, start: int) -> None:
        """Record the replacement of the current node; its nodes were written from index `start` on."""
        self.expansions.append(Expansion(self.where, what, self.rw.preceding[start:]))

    def refuse(self, reason: str, *, code: str = "", hint: Hint = "") -> NoReturn:
        """Refuse the current node."""
        raise CannotMigrate(reason, code=code or "control-flow", where=self.where, hint=hint)

    # The end

    def end(self, results: list[Held]) -> dict[str, Held]:
        """Give the written values the names of the node's outputs, and drop the node. Return the sequences and optionals."""
        rw, renamed, held = self.rw, dict[str, str](), dict[str, Held]()
        written_names = {name for node in rw.preceding for name in node.output}
        for name, value in zip(list(rw.node.output), results, strict=False):
            if not name:
                continue
            if not isinstance(value, str):
                held[name] = value
                continue
            own_type = replace(rw.scope.value_type(value), dtype=rw.dtype(value), shape=rw.shape(value))
            rw.scope.record_type(name, _joined(own_type, rw.scope.value_type(name)))
            # A value may be several outputs, and a node has one name for it, so the others are Identities.
            if value in written_names and value not in renamed:
                renamed[value] = name
            else:
                rw.after("Identity", [renamed.get(value, value)], [name])
                self.facts.add(rw.following[-1])
        output_names = set(renamed.values())
        if renamed:
            for node in nested_nodes(rw.preceding):
                for names in (node.input, node.output):
                    for index, name in enumerate(names):
                        if name in renamed:
                            names[index] = renamed[name]
            for node in rw.preceding:
                if any(name in output_names for name in node.output):
                    self.facts.add(node)
        # Other nodes give the outputs now.
        rw.remove()
        return {name: _renamed(value, renamed) for name, value in held.items()}


def _renamed(value: Held, names: dict[str, str]) -> Held:
    if isinstance(value, SequenceOf):
        return SequenceOf(tuple(_renamed(element, names) for element in value.elements))
    if isinstance(value, OptionalOf):
        return OptionalOf(None if value.element is None else _renamed(value.element, names))
    return names.get(value, value)


def _joined(found: ValueType, before: ValueType) -> ValueType:
    """Return the knowledge about a value from two sources; `found` knows its dims better."""
    if found.container or before.container:
        return found if found.container else before
    return ValueType(
        found.dtype or before.dtype,
        found.shape if found.shape is not None else before.shape,
        symbols=found.symbols if found.shape is not None else before.symbols,
    )
