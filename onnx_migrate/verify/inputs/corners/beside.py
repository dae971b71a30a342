"""Elements that equal, each in its own position, the constant which they meet there, or the next number above or below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.constraints.facts import Argument
from onnx_migrate.verify.inputs.corners.flow import Meeting
from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["MOST_CONSTANTS", "STEPS", "Beside", "beside", "constants_beside"]

STEPS = 3
"""Feeds in which an element is the constant, the next number above and the next below."""

MOST_CONSTANTS = 3
"""Constants of one input for which feeds are made."""

_LARGEST = 1 << 20
"""Elements of a constant and an input, broadcast together, at most."""

_MEETING = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min", "Where"})
"""Operators that hold each element of an input against the element of a constant at the same position."""

_DIVIDING = frozenset({"Div", "Mod"})

_MULTIPLES = (1, 137, -1, -240, 2, 313, -3)
"""Multiples of a divisor that an integer becomes in turn."""

_SPREAD = (0, 1, -1)


@dataclass(frozen=True, eq=False)
class Beside:
    """A constant that an input meets element by element.

    `multiples` says that it divides integers, `divisors` that integers divide it. A NaN among its elements is fed only if the
    node looks for NaN (`nan`).
    """

    constant: Array
    multiples: bool = False
    divisors: bool = False
    nan: bool = False

    def same(self, other: Beside) -> bool:
        """Whether another constant has the same elements and meets the input the same way."""
        ways = (self.multiples, self.divisors) == (other.multiples, other.divisors)
        return ways and np.array_equal(
            self.constant, other.constant, equal_nan=other.constant.dtype.kind == "f"
        )


def constants_beside(meetings: Iterable[Meeting], dtype: np.dtype[Any]) -> list[Beside]:
    """Return the constants of several elements that an input meets at these nodes, at most three."""
    distinct: list[Beside] = []
    for meeting in meetings:
        for constant in _of_meeting(meeting, dtype):
            # A constant that several nodes read gives the same feeds.
            if not any(constant.same(earlier) for earlier in distinct):
                distinct.append(constant)
    return distinct[:MOST_CONSTANTS]


def _of_meeting(meeting: Meeting, dtype: np.dtype[Any]) -> Iterator[Beside]:
    path, argument = meeting.path, meeting.argument
    operator, index = argument.node.op_type, argument.index
    divides = operator in _DIVIDING
    # Imputer replaces NaN.
    if operator == "Imputer" and path.in_place and not path.steps:
        yield Beside(_replaced(argument, dtype), nan=True)
    if operator not in _MEETING | _DIVIDING or not path.in_place or path.steps or not path.numbers:
        return
    # Floats have no exact multiples.
    if divides and dtype.kind == "f":
        return
    for at, name in enumerate(argument.node.input):
        constant = argument.facts.value(name) if name and at != index else None
        if constant is not None and constant.dtype.kind in "iuf" and (constant.size > 1 or divides):
            yield Beside(constant, divides and index == 0, divides and index == 1)


def _replaced(argument: Argument, dtype: np.dtype[Any]) -> Array:
    """Return the number that Imputer replaces, once for each column."""
    replaced, imputed = (
        ("replaced_value_int64", "imputed_value_int64s")
        if dtype.kind in "iu"
        else ("replaced_value_float", "imputed_value_floats")
    )
    return np.full(len(argument.attribute(imputed, [0])), float(argument.attribute(replaced, 0)))


def beside(value: InputValue, met: Beside, turn: int, rng: np.random.Generator) -> CornerValue | None:
    """Return values for one of three turns: over all turns each element is the constant, the next above and the next below."""
    # Each element of the input may meet another element of the constant.
    constant = _at_positions(met.constant, value.base.shape, rng)
    if constant is None or not value.base.size:
        return None
    positions = np.arange(value.base.size).reshape(value.base.shape)
    # Integers have whole neighbours.
    if value.dtype.kind in "iu":
        return CornerValue(_whole(constant, met, turn, positions, value.dtype))
    with np.errstate(all="ignore"):
        near = constant.astype(value.dtype)
        steps = (turn + positions) % STEPS
        values = np.choose(steps, [near, _next(near, np.inf), _next(near, -np.inf)])
    usable = np.isfinite(values) | (np.isnan(near) & (steps == 0) & met.nan)
    # NaN and infinities would hide all other elements.
    return CornerValue(np.where(usable, values, value.base).astype(value.dtype), usable)


def _at_positions(constant: Array, shape: tuple[int, ...], rng: np.random.Generator) -> Array | None:
    """Return for each element of an input the constant's element that it meets, one of them if it meets several."""
    if constant.size == prod(shape):
        return constant.reshape(shape)
    try:
        # numpy has the same rules for shapes as the node.
        whole = np.broadcast_shapes(constant.shape, shape)
    except ValueError:
        return None
    if whole == shape:
        return np.broadcast_to(constant, shape)
    # A large broadcast would cost more than it shows.
    if prod(whole) > _LARGEST:
        return None
    # Of several elements that one element meets, a random one comes last and stays.
    order = rng.permutation(prod(whole))
    positions = np.broadcast_to(np.arange(prod(shape)).reshape(shape), whole).reshape(-1)
    met_elements = np.zeros(prod(shape), constant.dtype)
    met_elements[positions[order]] = np.broadcast_to(constant, whole).reshape(-1)[order]
    return met_elements.reshape(shape)


def _next(numbers: Array, end: float) -> Array:
    """Return the next normal numbers towards an end: processors may treat smaller ones as 0."""
    following = np.nextafter(numbers, numbers.dtype.type(end))
    least = np.finfo(numbers.dtype).tiny
    far = np.where(np.abs(following) < least, np.copysign(least, end), following)
    return np.asarray(far, numbers.dtype)


def _whole(constant: Array, met: Beside, turn: int, places: Array, dtype: np.dtype[Any]) -> Array:
    """Return integers beside the elements of a constant, or beside multiples of them.

    No dividend is the least number of its type, which has no negative; no divisor is 0.
    """
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    low += bool(low and (met.multiples or met.divisors))
    numbers = np.nan_to_num(constant).reshape(-1).tolist()
    neighbours = []
    for position, number in zip(places.reshape(-1).tolist(), numbers, strict=True):
        factor = _MULTIPLES[(turn + position // STEPS) % len(_MULTIPLES)] if met.multiples else 1
        near = _multiple(round(number), factor, low, high) + _SPREAD[(turn + position) % STEPS]
        # A division by 0 is not defined for integers.
        neighbours.append(1 if met.divisors and not near else min(max(near, low), high))
    return np.array(neighbours, dtype).reshape(constant.shape)


def _multiple(number: int, factor: int, low: int, high: int) -> int:
    """Return a multiple of a number, with a smaller factor if the type has no larger number, positive if it has no sign."""
    if not number or (abs(factor) == 1 and low):
        return number * factor
    sign = -1 if factor < 0 and low else 1
    most = (high if sign * number > 0 else -low) // abs(number)
    return number * sign * min(abs(factor), max(most, 1))
