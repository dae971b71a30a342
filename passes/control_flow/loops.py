"""Loop and Scan: this module writes known numbers of iterations one after the other, and unchanging nodes once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.advice import FIX_DIMS, Advice
from onnx_migrate.facts.shape_arithmetic import attributes_of
from onnx_migrate.messages import count_and_verb, count_of
from onnx_migrate.model.graphs import names_read, nested_nodes, output_names, subgraphs

from .cost import multiplications
from .evaluate import RANDOM, Env, Evaluator, Held, SequenceOf, handles

_FIX = (
    FIX_DIMS,
    Advice(
        "fix the value of an input with --fix-value, if it follows from that; else run the body from your program"
    ),
)


@dataclass
class _Rounds:
    """The rounds of a body: the nodes that are the same in each are written before the first, all others in each."""

    at: Evaluator
    node: onnx.NodeProto
    env: Env
    start: int = 0
    count: int = 0
    changing: list[onnx.NodeProto] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start, self.env = len(self.at.rw.preceding), self.env.new_child()
        self.graph = next(graph for _, _, graph in subgraphs(self.node))

    def run(self, given: Sequence[Held]) -> list[Held]:
        """Write a round whose inputs are `given`, and return its outputs."""
        self.at.rounds += 1
        try:
            with self.at.inside(self.node, "body"):
                # The part of the body that does not depend on the round is written once.
                if not self.count:
                    same, self.changing = _split(self.graph)
                    self.at.body(self.graph, self.env, same)
                self.count += 1
                inputs = {value.name: passed for value, passed in zip(self.graph.input, given, strict=True)}
                return self.at.body(self.graph, self.env.new_child(inputs), self.changing)
        finally:
            self.at.rounds -= 1

    def end(self, why: str) -> None:
        """Record the replacement."""
        written = self.at.rw.preceding[self.start :]
        cost = sum(multiplications(node, self.at.rw) for node in written)
        self.at.expanded(
            f"{why}: its {count_and_verb(self.count, 'round', 'are')} written out, {cost:,} multiplications",
            self.start,
        )


def _split(graph: onnx.GraphProto) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """Return the nodes of a body that compute the same in each round, and all others, both in order."""
    changing = {value.name for value in graph.input}
    same, others = [], []
    for node in graph.node:
        # A random node must draw in each round.
        random = any(inner.op_type in RANDOM for inner in nested_nodes([node]))
        if random or not changing.isdisjoint(names_read(node)):
            changing.update(filter(None, node.output))
            others.append(node)
        else:
            same.append(node)
    return same, others


@handles("Loop")
def loop(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Write the rounds of a Loop whose trip count and condition are known."""
    counted = bool(node.input[0])
    most = at.number(env, node.input[0]) if counted else None
    going = at.number(env, node.input[1]) if len(node.input) > 1 and node.input[1] else 1
    states = [env.get(name, name) for name in node.input[2:]]
    if counted and most is None:
        at.refuse(f"the number of its rounds, {node.input[0]!r}, is computed at run time", hint=_FIX)
    rounds, scanned = _Rounds(at, node, env), list[list[Held]]()
    while most is None or rounds.count < most:
        if going is None:
            at.refuse(_stops(rounds.count), hint=_FIX)
        if not going:
            break
        # A limit on rounds and nodes keeps the model small.
        _bound(at, rounds.count, most)
        round_inputs = [
            at.constant(_of_rank(rounds.count, rounds.graph, 0)),
            at.constant(_of_rank(True, rounds.graph, 1)),
            *states,
        ]
        condition, *results = rounds.run(round_inputs)
        states = results[: len(states)]
        scanned.append(results[len(states) :])
        # The condition of this round decides on the next one.
        going = at.number(Env({"": condition}), "")
    why = (
        "its number of rounds is known"
        if most is not None and rounds.count == most
        else "its condition is known"
    )
    stacked = [
        _stacked(at, node, len(states) + output_index, round_values)
        for output_index, round_values in enumerate(_columns(scanned, node, states))
    ]
    rounds.end(why)
    return [*states, *stacked]


def _of_rank(number: int | bool, graph: onnx.GraphProto, place: int) -> int | bool | list[int]:
    """Return a counter or condition in the shape that a body expects, which may be a vector of one element."""
    kind = graph.input[place].type.tensor_type
    return [number] if kind.HasField("shape") and len(kind.shape.dim) == 1 else number


def _columns(scanned: list[list[Held]], node: onnx.NodeProto, states: Sequence[Held]) -> list[list[Held]]:
    """Return the values of each scan output."""
    if scanned:
        return [list(column) for column in zip(*scanned, strict=True)]
    return [[] for _ in node.output[len(states) :]]


def _stops(count: int) -> str:
    when = "whether it begins" if not count else f"its condition after {count_of(count, 'round')}"
    return f"{when} is computed at run time, so that the number of its rounds depends on data"


def _bound(at: Evaluator, count: int, most: int | None) -> None:
    """Refuse more rounds than nodes may be written: a round whose nodes are all computed at once writes none."""
    if count >= at.bounds.nodes:
        rounds = (
            f"more than {count_of(count, 'round')}" if most is None else f"up to {count_of(most, 'round')}"
        )
        at.refuse(
            f"it has {rounds}, and {count_of(at.bounds.nodes, 'node')} may be written for it",
            code="unroll-limit",
            hint="raise --unroll-limit, if the target takes a model of so many nodes",
        )


def _stacked(at: Evaluator, node: onnx.NodeProto, place: int, items: list[Held], axis: int = 0) -> Held:
    """Return a scan output: the values of all rounds along a new axis."""
    if items:
        return at.stack([at.tensor(Env({"": round_value}), "") for round_value in items], axis)
    name = node.output[place]
    if not name:
        return ""
    shape, dtype = at.rw.shape(name), at.rw.dtype(name)
    if dtype is None or shape is None or None in shape[1:]:
        at.refuse(f"it has no rounds, and the shape of its empty output {name!r} is not known", hint=_FIX)
    return at.stored(np.zeros((0, *shape[1:]), helper.tensor_dtype_to_np_dtype(dtype)))


@handles("Scan")
def scan(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Write the rounds of a Scan over an axis whose size is known."""
    # Scan-8 has other inputs.
    if at.rw.version < 9:
        at.refuse(
            "Scan has a batch axis below opset 9",
            hint=Advice("bring the model to opset 9 or later, with --opset", options={"opset": 9}),
        )
    attributes = attributes_of(node)
    scans = int(attributes["num_scan_inputs"])
    states = [env.get(name, name) for name in node.input[: len(node.input) - scans]]
    sources = [at.tensor(env, name) for name in node.input[len(states) :]]
    axes = attributes.get("scan_input_axes", [0] * scans)
    shape = at.rw.shape(sources[0])
    count = None if shape is None else shape[axes[0]]
    if count is None:
        at.refuse(
            f"the number of its rounds, the size of axis {axes[0]} of {sources[0]!r}, is not known", hint=_FIX
        )
    _bound(at, count - 1, count)
    backwards = attributes.get("scan_input_directions", [0] * scans)
    rounds, scanned = _Rounds(at, node, env), list[list[Held]]()
    for number in range(count):
        elements = [
            # A reversed input is read from its end.
            _element(at, source, count - 1 - number if reverse else number, axis)
            for source, axis, reverse in zip(sources, axes, backwards, strict=True)
        ]
        results = rounds.run([*states, *elements])
        states = results[: len(states)]
        scanned.append(results[len(states) :])
    columns = _columns(scanned, node, states)
    reversed_ = attributes.get("scan_output_directions", [0] * len(columns))
    axes = attributes.get("scan_output_axes", [0] * len(columns))
    stacked = []
    for output_index, (round_values, axis, reverse) in enumerate(zip(columns, axes, reversed_, strict=True)):
        # A negative axis counts the new axis too.
        if axis < 0 and round_values:
            axis += at.value(at.tensor(Env({"": round_values[0]}), "")).need_rank() + 1
        stacked.append(
            _stacked(
                at, node, len(states) + output_index, round_values[::-1] if reverse else round_values, axis
            )
        )
    rounds.end("the axis that it scans has a known size")
    return [*states, *stacked]


def _element(at: Evaluator, source: str, number: int, axis: int) -> str:
    return at.name_of(at.op.Gather(at.value(source), at.value(at.constant(number)), axis=axis))


@handles("SequenceMap")
def sequence_map(at: Evaluator, node: onnx.NodeProto, env: Env) -> list[Held]:
    """Write the body of a SequenceMap once for each element."""
    held_inputs = [env.get(name, name) for name in node.input]
    first = held_inputs[0]
    # The number of elements must be known.
    if not isinstance(first, SequenceOf):
        at.refuse(f"of {node.input[0]!r} it is not known which tensors it holds", code="sequences")
    rounds, results = _Rounds(at, node, env), list[list[Held]]()
    for number in range(len(first.elements)):
        elements = [
            held_input.elements[number] if isinstance(held_input, SequenceOf) else held_input
            for held_input in held_inputs
        ]
        results.append(rounds.run(elements))
    columns = zip(*results, strict=True) if results else [() for _ in output_names(rounds.graph)]
    rounds.end("the length of the sequence is known")
    return [SequenceOf(tuple(column)) for column in columns]
