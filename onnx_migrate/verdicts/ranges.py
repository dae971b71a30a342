"""The sizes of the numbers of a model's nodes, compared with the range of a floating-point type."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NodeRange", "NumberRanges"]


@dataclass(frozen=True)
class NodeRange:
    """The largest and the smallest nonzero magnitude of a node's first output; `kept` is whether it keeps its type."""

    node: str
    operator: str
    largest: float
    smallest: float
    kept: bool


@dataclass(frozen=True)
class NumberRanges:
    """The ranges of the float values of a model's main graph on the verifier's inputs, or the user's.

    `type` is the type that the precision pass converted the model to, `highest` its largest number, `lowest` its smallest nonzero
    one.
    """

    type: str
    highest: float
    lowest: float
    nodes: tuple[NodeRange, ...]
