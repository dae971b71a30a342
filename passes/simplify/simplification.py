"""The changes of a simplification: the operators before and after, and a description."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx

from onnx_migrate.messages import count_of, first_of
from onnx_migrate.model.graphs import (
    initializer_names,
    initializer_types,
    names_read,
    node_label,
    producers,
)
from onnx_migrate.rewrite.operator_counts import operator_name

__all__ = ["Simplification", "Simplified"]

FOLDED, FUSED, MERGED, REMOVED, UNUSED = "folded", "fused", "merged", "removed", "unused"
WRITTEN, ADDED = "written", "added"
"""The fates of nodes. A simplifier computes nodes to constants (folded), adds them to another node (fused), or keeps one of
several equal ones (merged). It removes nodes without effect (removed), and nodes that nothing reads (unused). It writes others
in another way (written), and the new nodes are added."""

STAYED = ("", "")

_WITHOUT_EFFECT = frozenset({"Identity", "Dropout"})

_TAKING_IN = frozenset(
    {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "AveragePool", "MaxPool"}
)
"""Operators that can compute what a node before or after them does, with other weights, a bias or pads."""

_SHOWN = 3
"""Number of nodes that the text names."""


@dataclass(frozen=True)
class Simplified:
    """The number of nodes of an operator with one of these fates; `into` is the operator of the node they were fused into."""

    kind: str
    operator: str
    into: str
    nodes: int


@dataclass(frozen=True)
class Simplification:
    """The main graph before and after: nodes by operator, their fates, and the remaining differences if no node changed.

    `done` has how many nodes of an operator were folded, fused, merged, removed, written in another way, or added. `inner` is
    the number of nodes that bodies of branches, loops and functions gained; it is negative if they lost nodes.
    """

    before: dict[str, int]
    after: dict[str, int]
    details: str = ""
    done: tuple[Simplified, ...] = ()
    inner: int = 0

    @classmethod
    def of(cls, before: onnx.GraphProto, after: onnx.GraphProto, inner: int = 0) -> Simplification:
        """Compare a graph with its simplified version."""
        old, new = _operators(before), _operators(after)
        changes = _done(before, after)
        same = not changes and not inner and old == new
        return cls(old, new, _details(before, after) if same else "", changes, inner)

    def __str__(self) -> str:
        inside = "branches, loops and functions"
        if not self.inner:
            return self._main_graph
        inner = f"{inside} have {count_of(abs(self.inner), 'node')} {'fewer' if self.inner < 0 else 'more'}"
        return f"{self._main_graph}; {inner}" if self.done or self.before != self.after else inner

    @property
    def _main_graph(self) -> str:
        """The changes of the main graph in words."""
        if self.details:
            return f"simplification added and removed no node: {self.details}"
        if self.done:
            return ", ".join(_words(self.done))
        rows = [
            f"{operator} {self.before.get(operator, 0)} → {self.after.get(operator, 0)}"
            for operator in sorted({*self.before, *self.after})
            if self.before.get(operator, 0) != self.after.get(operator, 0)
        ]
        old, new = sum(self.before.values()), sum(self.after.values())
        became = str(new) if old != new else "another" if new == 1 else "as many others"
        return f"{count_of(old, 'node')} became {became}: {', '.join(rows)}"


def _words(done: Iterable[Simplified]) -> list[str]:
    """Return the changes as words, such as "fused 3 BatchNormalization into Conv"."""
    by_kind: dict[str, list[Simplified]] = defaultdict(list)
    for change in done:
        by_kind[change.kind].append(change)
    words = []
    if folded := by_kind[FOLDED]:
        words.append(
            f"folded {count_of(sum(change.nodes for change in folded), 'node')} into constants ({_listed(folded)})"
        )
    words += [f"fused {change.nodes} {change.operator} into {change.into}" for change in by_kind[FUSED]]
    if written := by_kind[WRITTEN]:
        others = f" as {_listed(by_kind[ADDED])}" if by_kind[ADDED] else " with others"
        words.append(
            f"wrote {count_of(sum(change.nodes for change in written), 'node')} ({_listed(written)}){others}"
        )
    elif by_kind[ADDED]:
        words.append(f"added {_listed(by_kind[ADDED])}")
    texts = {
        MERGED: "merged equal nodes",
        REMOVED: "removed nodes without effect",
        UNUSED: "removed unused nodes",
    }
    words += [f"{text} ({_listed(by_kind[kind])})" for kind, text in texts.items() if by_kind[kind]]
    return words


def _listed(items: Iterable[Simplified]) -> str:
    return ", ".join(f"{change.operator} {change.nodes}" for change in items)


class _Fates:
    """The fate of each node of a graph: "" for a node that stayed, else a kind, and the operator that it was fused into."""

    def __init__(self, before: onnx.GraphProto, after: onnx.GraphProto) -> None:
        self._old, self._new = producers(before), producers(after)
        self._constants = initializer_names(after) | {
            name for name, node in self._new.items() if node.op_type == "Constant"
        }
        self._readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
        for node in before.node:
            for name in names_read(node):
                self._readers[name].append(node)
        self._stands: dict[str, str] = {}
        """For each removed value, the value of the new graph that replaces it."""
        self._fates: dict[str, tuple[str, str]] = {}
        for node in reversed(before.node):
            if node.output and node.op_type != "Constant":
                self._fates[node.output[0]] = self._fate(node)

    def counts(self, before: onnx.GraphProto) -> Counter[tuple[str, str, str]]:
        """Return the number of nodes by their fate, operator, and the operator that they were fused into."""
        return Counter(
            (kind, _operator(node), into)
            for node in before.node
            if node.output and node.op_type != "Constant"
            for kind, into in [self._fates[node.output[0]]]
            if kind
        )

    def _fate(self, node: onnx.NodeProto) -> tuple[str, str]:
        # A fate is that of the node's outputs, because nodes have no identity across both graphs.
        outputs = [name for name in node.output if name]
        new_producers = [
            self._new[name] for name in outputs if name in self._new and name not in self._constants
        ]
        if any(_operator(other) == _operator(node) for other in new_producers):
            return STAYED
        if new_producers:
            read = self._old.get(node.input[0]) if node.input else None
            grown = (
                read is not None
                and _operator(read) == _operator(new_producers[0])
                and read.output[0] not in self._new
            )
            return _fused(node, new_producers[0]) if grown else (WRITTEN, "")
        if any(name in self._constants for name in outputs):
            # The simplifier computed the output and stored it.
            return FOLDED, ""
        # A node without a result in the new graph shares the fate of the nodes that read it.
        readers = [reader for name in outputs for reader in self._readers[name]]
        fates = [self._fates.get(reader.output[0], STAYED) for reader in readers if reader.output]
        if not fates:
            return UNUSED, ""
        # A node that only folded nodes read went with them.
        if all(kind in (FOLDED, UNUSED) for kind, _ in fates):
            return fates[0] if all(fate == fates[0] for fate in fates) else (FOLDED, "")
        fused = next((fate for fate in fates if fate[0] == FUSED), None)
        if fused is not None:
            # A node is not fused into its own kind.
            return STAYED if fused[1] == _operator(node) else fused
        if any(kind == WRITTEN for kind, _ in fates):
            return WRITTEN, ""
        return self._replaced(node, outputs, readers)

    def _replaced(
        self, node: onnx.NodeProto, outputs: list[str], readers: list[onnx.NodeProto]
    ) -> tuple[str, str]:
        """Return the fate of a node, given the value that the readers of its output read now."""
        value = next(self._in_place(outputs, readers), None)
        # Readers use no other value instead, so the node had no effect.
        if value is None:
            return REMOVED, ""
        self._stands.update(dict.fromkeys(outputs, value))
        if value in self._constants:
            return FOLDED, ""
        former, maker = self._old.get(value), self._new.get(value)
        if _operator(node) in _WITHOUT_EFFECT or maker is None:
            return REMOVED, ""
        # The value is new, so other nodes compute it.
        if former is None:
            return STAYED if _operator(maker) == _operator(node) else (WRITTEN, "")
        if _operator(maker) == _operator(node) and value not in node.input:
            return MERGED, ""
        # A node that took in another one has other constants or attributes.
        changed = list(former.input[1:]) != list(maker.input[1:]) or former.attribute != maker.attribute
        return _fused(node, maker) if changed else (REMOVED, "")

    def _in_place(self, outputs: list[str], readers: list[onnx.NodeProto]) -> Iterator[str]:
        """Yield the values that replace a node's outputs for its readers, directly or past removed nodes."""
        for reader in readers:
            result = reader.output[0] if reader.output else ""
            now = self._new.get(result)
            if now is None and result in self._stands and self._fates[result][0] in (REMOVED, FUSED):
                yield self._stands[result]
            for index, name in enumerate(reader.input):
                if now is not None and name in outputs and index < len(now.input):
                    yield now.input[index]


def _fused(node: onnx.NodeProto, into: onnx.NodeProto) -> tuple[str, str]:
    """Return that a node became part of another, if that is of an operator that takes others in, or of the same one."""
    operator = _operator(into)
    return (FUSED, operator) if operator in (*_TAKING_IN, _operator(node)) else (WRITTEN, "")


def _done(before: onnx.GraphProto, after: onnx.GraphProto) -> tuple[Simplified, ...]:
    """Return the changes; nodes of the new graph in excess of the remaining old ones count as added."""
    counts = _Fates(before, after).counts(before)
    unexplained = Counter(_operators(before))
    # A node with a fate explains its disappearance.
    for (_, operator, _), number in counts.items():
        unexplained[operator] -= number
    for operator, number in _operators(after).items():
        if operator != "Constant" and number > unexplained[operator]:
            counts[ADDED, operator, ""] = number - unexplained[operator]
    ordered = sorted(counts.items(), key=lambda item: (item[0][0], -item[1], item[0]))
    return tuple(Simplified(kind, operator, into, number) for (kind, operator, into), number in ordered)


def _operators(graph: onnx.GraphProto) -> dict[str, int]:
    return dict(sorted(Counter(map(_operator, graph.node)).items()))


def _operator(node: onnx.NodeProto) -> str:
    return operator_name(node.domain, node.op_type)


def _details(before: onnx.GraphProto, after: onnx.GraphProto) -> str:
    """Return the differences between two graphs with the same operators, as words."""
    old = {_bytes(node) for node in before.node}
    # onnxsim gives names to nodes that have none.
    unnamed = {_bytes(node, named=False) for node in before.node if not node.name}
    others = [node for node in after.node if _bytes(node) not in old]
    named = [node for node in others if _bytes(node, named=False) in unnamed]
    changed = [node for node in others if _bytes(node, named=False) not in unnamed]
    parts = []
    if changed:
        names = first_of([f"{node.op_type} {node_label(node)!r}" for node in changed], _SHOWN)
        parts.append(f"inputs, outputs or attributes changed at {names}")
    if named:
        parts.append(f"{count_of(len(named), 'node')} without a name got one")
    weights, new_weights = set(initializer_types(before)), set(initializer_types(after))
    if weights - new_weights:
        parts.append(f"{count_of(len(weights - new_weights), 'weight')} removed")
    if new_weights - weights:
        parts.append(f"{count_of(len(new_weights - weights), 'weight')} added")
    return ", ".join(parts) or "it changed the order of nodes"


def _bytes(node: onnx.NodeProto, *, named: bool = True) -> bytes:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    if not named:
        copy.ClearField("name")
    return bytes(copy.SerializeToString(deterministic=True))
