"""Outputs behind a decision: nodes that choose among computed numbers, and how many elements another choice changes.

Any rounding may bring a number to the other side of a threshold. The largest error then says nothing, and the share of the
elements that change does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.facts.typed_graph import Frame, Step, Value
from onnx_migrate.standard.retyping import FLOATS

__all__ = ["CHANCE", "decided_outputs", "decides", "share_beyond"]

CHANCE = 0.125
"""Share of an output's elements. If rounded weights and inputs alone change more, chance decides the output."""

_CHOOSING = frozenset(
    {
        "ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Hardmax", "Less", "LessOrEqual",
        "NonMaxSuppression", "NonZero", "Round", "Sign", "TopK", "Unique",
    }
)  # fmt: skip
"""Operators that choose, and Casts to integers. If their input passes a tie, they return another number, not one nearby."""

_DECIDING = _CHOOSING | {"GridSample", "Mod"}
"""These, and operators that jump at many numbers."""


def decides(frame: Frame) -> bool:
    """Return whether a body, or one inside it, has a node that decides by computed floats."""
    return any(
        _reads_floats(step, _DECIDING) or any(decides(inner) for _, inner in step.inner)
        for step in frame.steps
    )


def decided_outputs(graph: Frame) -> frozenset[str]:
    """Return the outputs that depend on a choice among numbers which are computed from the inputs' elements."""
    data: set[Value] = {
        value for value in graph.values.values() if value.maker is None and value.tensor is None
    }
    decided: set[Value] = set()
    for step in graph.steps:
        read = {*_read(step)}
        # Rounding changes elements and no dims, so a choice by dims alone never changes.
        if step.is_a("Shape", "Size") or data.isdisjoint(read):
            continue
        data.update(step.made)
        if not decided.isdisjoint(read) or _chooses(step):
            decided.update(step.made)
    return frozenset(value.name for value in decided if value.is_output)


def share_beyond(expected: Any, given: Any, off: float) -> float:
    """Return the share of the elements of an output that differ by more than `off`."""
    return float(np.mean(np.abs(given - expected) > off)) if expected.size else 0.0


def _chooses(step: Step) -> bool:
    inner = (other for _, frame in step.inner for other in frame.steps)
    return _reads_floats(step, _CHOOSING) or any(map(_chooses, inner))


def _reads_floats(step: Step, operators: frozenset[str]) -> bool:
    """Return whether a node is of one of these operators, or casts to integers, and reads computed floats."""
    floats = any(value.dtype in FLOATS and value.tensor is None for value in step.read)
    to_integers = step.is_a("Cast") and all(
        value is not None and value.dtype not in (*FLOATS, TensorProto.DOUBLE) for value in step.outputs
    )
    return floats and (step.is_a(*operators) or to_integers)


def _read(step: Step) -> list[Value]:
    """Return the values that a node and the nodes inside it read."""
    return [
        *step.read,
        *(value for _, frame in step.inner for other in frame.steps for value in _read(other)),
    ]
