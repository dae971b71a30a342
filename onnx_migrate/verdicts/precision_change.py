"""The effect of a change of precision on a model: bytes and nodes, those that keep their type with reasons, and the error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx_migrate.messages import count_and_verb, count_of, size_text
from onnx_migrate.verdicts.comparison import RoundedOutput

__all__ = ["KeptNode", "KeptOperator", "KeptReason", "PrecisionChange", "WideWeight"]

_OPERATORS = 6
"""How many operators a line of the report names."""

_REASONS = 3
"""How many reasons a line of the report gives, each with a node."""


@dataclass(frozen=True)
class KeptNode:
    """A node that does not compute in the new type, and why.

    `weight_bytes` are the bytes of its weights that keep their type. `largest` and `smallest` are the largest and the smallest
    magnitude but 0 of its first output, None if nobody measured them.
    """

    node: str
    operator: str
    reason: str
    weight_bytes: int
    largest: float | None = None
    smallest: float | None = None

    @property
    def range(self) -> str:
        """The range of its numbers, as the end of a sentence; "" if nobody measured it."""
        if self.largest is None or self.smallest is None:
            return ""
        return f" (numbers from {self.smallest:.3g} to {self.largest:.3g})"


@dataclass(frozen=True)
class WideWeight:
    """A weight that keeps its type, with the first node that reads it, and why."""

    name: str
    operator: str
    bytes: int
    reason: str


@dataclass(frozen=True)
class KeptOperator:
    """How many nodes of an operator do not compute in the new type, and the bytes of their weights that keep their type."""

    operator: str
    nodes: int
    weight_bytes: int

    def __str__(self) -> str:
        nodes = f"{self.nodes:,} " if self.nodes else ""
        weights = f" with {size_text(self.weight_bytes)}" if self.weight_bytes else ""
        return f"{nodes}{self.operator}{weights}"


@dataclass(frozen=True)
class KeptReason:
    """A reason for which nodes, or weights, keep their type, with their number and the `first`, which has most bytes.

    `noun` is "node" or "weight". `range` is the range of the first node's numbers, as the end of a sentence.
    """

    reason: str
    noun: str
    count: int
    weight_bytes: int
    first: str
    range: str = ""

    def __str__(self) -> str:
        others, noun = self.count - 1, f"other {self.noun}"
        more = f"; the same applies to {count_of(others, noun)}" if others else ""
        return f"{self.first!r}{self.range} stays because {self.reason}{more}"


@dataclass(frozen=True)
class PrecisionChange:
    """The effect of a change of precision.

    `type` is the new type, `old_type` that of the nodes and weights that keep theirs. With `weights_alone` no node computes in
    the new type. `before` and `after` are the bytes of all weights. `computing` counts the nodes that compute in the new type,
    `casts` the added Casts. `stored_narrow` counts the bytes of weights that are stored in the new type, and read in the old one.
    `kept` are the nodes that do not compute in the new type, `weights` the weights that keep their type. `tolerance` is the limit
    that the user gave for the error, `outputs` has the errors. `generated_inputs` says that they were measured on inputs which
    onnx-migrate generated, and not on the user's.
    """

    type: str
    old_type: str
    weights_alone: bool
    before: int
    after: int
    computing: int
    casts: int
    stored_narrow: int
    kept: tuple[KeptNode, ...]
    weights: tuple[WideWeight, ...]
    outputs: tuple[RoundedOutput, ...] = ()
    tolerance: float | None = None
    generated_inputs: bool = False

    @property
    def kept_bytes(self) -> int:
        """The bytes of weights that keep their type."""
        return sum(weight.bytes for weight in self.weights)

    @property
    def operators(self) -> tuple[KeptOperator, ...]:
        """The nodes and weights that keep their type by operator, those with most bytes first."""
        nodes: dict[str, int] = {}
        sizes: dict[str, int] = {}
        for node in self.kept:
            nodes[node.operator] = nodes.get(node.operator, 0) + 1
        for weight in self.weights:
            sizes[weight.operator] = sizes.get(weight.operator, 0) + weight.bytes
        rows = [KeptOperator(name, nodes.get(name, 0), sizes.get(name, 0)) for name in {**nodes, **sizes}]
        return tuple(sorted(rows, key=lambda row: (-row.weight_bytes, -row.nodes, row.operator)))

    @property
    def reasons(self) -> tuple[KeptReason, ...]:
        """The reasons for which nodes do not compute in the new type, or weights alone keep theirs; those of most bytes first."""
        nodes = [(node.reason, "node", node.node, node.weight_bytes, node.range) for node in self.kept]
        weights = [(weight.reason, "weight", weight.name, weight.bytes, "") for weight in self.weights]
        groups: dict[str, list[tuple[str, str, str, int, str]]] = {}
        for row in weights if self.weights_alone else nodes:
            groups.setdefault(row[0], []).append(row)
        rows = []
        for reason, members in groups.items():
            _, noun, first, _, numbers = max(members, key=lambda row: row[3])
            rows.append(
                KeptReason(reason, noun, len(members), sum(row[3] for row in members), first, numbers)
            )
        return tuple(sorted(rows, key=lambda row: (-row.weight_bytes, -row.count)))

    @property
    def worst(self) -> RoundedOutput | None:
        """The output whose error is largest beside its limit, None if nobody measured one."""
        return max(self.outputs, key=lambda output: output.excess, default=None)

    @property
    def size_line(self) -> str:
        """Say how many bytes the weights have, and how many nodes compute in the new type."""
        if self.weights_alone:
            nodes = f"nodes compute in the types that they had, and {count_and_verb(self.casts, 'Cast', 'bring')} weights to them"
        else:
            nodes = f"{count_and_verb(self.computing, 'node', 'compute')} in {self.type}"
            nodes += f", and {count_and_verb(self.casts, 'Cast', 'were')} added" if self.casts else ""
        shrunk = f"the weights take {size_text(self.after)} instead of {size_text(self.before)}"
        return f"{shrunk}; {nodes}"

    @property
    def kept_line(self) -> str:
        """Say how many nodes and bytes keep their type, by operator."""
        if not self.kept and not self.weights:
            return f"no {'' if self.weights_alone else 'node and no '}weight stays in {self.old_type}"
        rows = [*map(str, self.operators[:_OPERATORS])]
        more = len(self.operators) - len(rows)
        rows += [f"{count_of(more, 'other operator')}"] if more else []
        parts = [count_of(len(self.kept), "node")] if self.kept else []
        parts += [f"{size_text(self.kept_bytes)} of weights"] if self.weights else []
        verb = "stays" if len(self.kept) + 2 * bool(self.weights) == 1 else "stay"
        return f"{' and '.join(parts)} {verb} in {self.old_type}: {', '.join(rows)}"

    @property
    def reason_line(self) -> str:
        """Give the main reasons, each with a node; "" if every node computes in the new type."""
        sentences = [*map(str, self.reasons[:_REASONS])]
        more = len(self.reasons) - len(sentences)
        sentences += [f"--verbose lists {count_of(more, 'other reason')}"] if more else []
        return "; ".join(sentences)

    @property
    def error_line(self) -> str:
        """State the largest error beside its limit; "" if nobody measured one."""
        worst = self.worst
        if worst is None:
            return ""
        others = len(self.outputs) - 1
        more = f"; {count_and_verb(others, 'other output', 'are')} closer to the original" if others else ""
        origin = "; you gave this limit" if self.tolerance is not None else ""
        inputs = (
            "; measured on generated inputs (--input-data measures yours)" if self.generated_inputs else ""
        )
        return f"{worst}{origin}{more}{inputs}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of the report: bytes, nodes and weights that keep their type, the main reasons, and the error."""
        return tuple(filter(None, (self.size_line, self.kept_line, self.reason_line, self.error_line)))

    @property
    def node_lines(self) -> Iterator[str]:
        """Yield a line for each node and each weight that keeps its type."""
        for node in self.kept:
            yield f"{node.node!r} ({node.operator}){node.range}: {node.reason}"
        for weight in self.weights:
            yield f"weight {weight.name!r} of {size_text(weight.bytes)}: {weight.reason}"
