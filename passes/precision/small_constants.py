"""The numbers that a small constant keeps above 0, and operators that are steep at 0: a division, a logarithm, a root."""

from __future__ import annotations

from collections.abc import Iterable

from onnx_migrate.facts.typed_graph import Step, Value
from onnx_migrate.standard.element_types import type_name

from .numbers import largest, smallest
from .plan import Plan, moves
from .stored import StoredNumbers

__all__ = ["keep_behind_small_constants"]

_STEEP = frozenset({"Div", "Log", "Pow", "Reciprocal", "Sqrt"})
"""Operators whose result or slope becomes infinite if the input becomes 0."""

_UNITS = 8
"""A number differs clearly from 0 if it is at least this many times the smallest number of the type."""


def keep_behind_small_constants(steps: Iterable[Step], plan: Plan, stored: StoredNumbers) -> None:
    """Keep nodes that divide by, or take a logarithm or root of, a number that a small constant keeps above 0.

    The nodes that add the constant or move the sum stay too. If a reciprocal would be infinite, nodes that multiply by it stay.
    """
    small: dict[Value, tuple[float, tuple[Step, ...]]] = {}
    large: set[Value] = set()
    reason = "it divides by a small number, or takes its logarithm or root"
    for step in steps:
        small_inputs = [(index, value) for index, value in enumerate(step.inputs) if value in small]
        least, way = min(
            (small[value] for _, value in small_inputs if value), default=(0.0, ()), key=lambda one: one[0]
        )
        if step in plan.vanishing:
            small.update(dict.fromkeys(step.made, (plan.vanishing[step], (step,))))
        elif step.is_a("Mul", "Div") and any(value in large for value in step.inputs):
            plan.keep(step, reason)
        elif small_inputs and moves(step):
            small.update(dict.fromkeys(step.made, (least, (*way, step))))
        elif small_inputs and (beyond := _beyond_a_slope(step, small_inputs[-1][0], least, stored)):
            small.update(dict.fromkeys(step.made, (beyond, (step,))))
            if beyond > largest(plan.target):
                large.update(step.made)
            elif least >= _UNITS * smallest(plan.target):
                continue
            for other in (*way, step):
                if other in plan.vanishing and other in plan.changes:
                    plan.keep(
                        other,
                        f"its constant {plan.vanishing[other]:.3g} becomes 0 in {type_name(plan.target)}",
                    )
                plan.keep(other, reason)


def _beyond_a_slope(step: Step, place: int, least: float, stored: StoredNumbers) -> float:
    """Return how small or large a number becomes that a node reads and that is at least so large; 0 for no steep operator."""
    if step.domain or step.node.op_type not in _STEEP or (step.is_a("Div") and place == 0):
        return 0.0
    if step.is_a("Log"):
        return 1.0
    exponent = 0.5 if step.is_a("Sqrt") else -1.0
    if step.is_a("Pow"):
        value = step.inputs[1]
        exponent = 0.0 if value is None or value.tensor is None else float(stored.numbers(value.tensor).min())
        if place == 1 or exponent >= 1:
            return 0.0
    if step.is_a("Div") and step.inputs[0] is not None and step.inputs[0].tensor is None:
        return 1.0  # the numerator is as small
    return float(least**exponent)
