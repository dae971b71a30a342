"""What a simplification changed: the operators before and after, and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import onnx

from onnx_migrate.model.graphs import initializer_types, node_label
from onnx_migrate.spec.schema import is_onnx

__all__ = ["Simplification"]

_SHOWN = 3
"""Number of nodes that the text names."""


@dataclass(frozen=True)
class Simplification:
    """The main graph before and after: nodes by operator, and what else differs where these numbers are the same."""

    before: dict[str, int]
    after: dict[str, int]
    details: str = ""

    @classmethod
    def of(cls, before: onnx.GraphProto, after: onnx.GraphProto) -> Simplification:
        """Compare a graph with what became of it."""
        old, new = _operators(before), _operators(after)
        return cls(old, new, _details(before, after) if old == new else "")

    def __str__(self) -> str:
        old, new = sum(self.before.values()), sum(self.after.values())
        if self.details:
            return f"no node was added or removed; {self.details}"
        rows = [
            f"{operator} {self.before.get(operator, 0)} → {self.after.get(operator, 0)}"
            for operator in sorted({*self.before, *self.after})
            if self.before.get(operator, 0) != self.after.get(operator, 0)
        ]
        became = str(new) if old != new else "another" if new == 1 else "as many others"
        return f"{_count(old, 'node')} became {became}: {', '.join(rows)}"

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return the nodes by operator as JSON's types."""
        return {"before": self.before, "after": self.after}


def _operators(graph: onnx.GraphProto) -> dict[str, int]:
    counts = Counter(
        node.op_type if is_onnx(node.domain) else f"{node.domain}.{node.op_type}" for node in graph.node
    )
    return dict(sorted(counts.items()))


def _details(before: onnx.GraphProto, after: onnx.GraphProto) -> str:
    """Return what differs between two graphs with the same operators, as words."""
    old = {_bytes(node) for node in before.node}
    unnamed = {_bytes(node, named=False) for node in before.node if not node.name}
    others = [node for node in after.node if _bytes(node) not in old]
    named = [node for node in others if _bytes(node, named=False) in unnamed]
    changed = [node for node in others if _bytes(node, named=False) not in unnamed]
    parts = []
    if changed:
        names = ", ".join(f"{node.op_type} {node_label(node)!r}" for node in changed[:_SHOWN])
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        parts.append(f"inputs, outputs or attributes changed at {names}{more}")
    if named:
        parts.append(f"{_count(len(named), 'node')} without a name got one")
    weights, kept = set(initializer_types(before)), set(initializer_types(after))
    if weights - kept:
        parts.append(f"{_count(len(weights - kept), 'weight')} removed")
    if kept - weights:
        parts.append(f"{_count(len(kept - weights), 'weight')} added")
    return ", ".join(parts) or "the order of nodes changed"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _bytes(node: onnx.NodeProto, *, named: bool = True) -> bytes:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    if not named:
        copy.ClearField("name")
    return bytes(copy.SerializeToString(deterministic=True))
