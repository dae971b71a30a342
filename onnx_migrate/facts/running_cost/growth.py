"""Extrapolates the state of a loop: growth by a sum or a factor in the last rounds continues in all later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onnx_migrate.facts.running_cost.value_estimate import LARGEST_DIM, Array, ValueEstimate

__all__ = ["state_after"]

_MOST_DOUBLINGS = 128
"""Rounds of growth by a factor after which a number is beyond LARGEST_DIM."""


def state_after(states: Sequence[Sequence[ValueEstimate]], rounds: int) -> list[ValueEstimate]:
    """Return the state `rounds` rounds after the last of these states, which are those of successive rounds."""
    if len(states) < 3 or rounds <= 0:
        return list(states[-1])
    return [_after(parts, rounds) for parts in zip(*states[-3:], strict=True)]


def _after(parts: tuple[ValueEstimate, ...], rounds: int) -> ValueEstimate:
    first, second, third = parts
    if second == third:
        return third
    values = _values_after([part.values for part in parts], rounds)
    return replace(
        third,
        dims=_dims_after([part.dims for part in parts], rounds),
        values=values,
        numbers=() if values is None else tuple(values.reshape(-1).tolist()),
        text_bytes=_number_after(first.text_bytes, second.text_bytes, third.text_bytes, rounds),
        items=None
        if first.items is None or second.items is None or third.items is None
        else _number_after(first.items, second.items, third.items, rounds),
        item_bytes=_number_after(first.item_bytes, second.item_bytes, third.item_bytes, rounds),
    )


def _dims_after(parts: Sequence[tuple[int, ...] | None], rounds: int) -> tuple[int, ...] | None:
    first, second, third = parts
    if first is None or second is None or third is None or not len(first) == len(second) == len(third):
        return third
    return tuple(_number_after(*sizes, rounds) for sizes in zip(first, second, third, strict=True))


def _number_after(first: int, second: int, third: int, rounds: int) -> int:
    """Return a number `rounds` rounds later; the last number if it grew neither by a sum nor by a factor."""
    if third - second == second - first:
        return max(0, min(third + rounds * (third - second), LARGEST_DIM))
    if first > 0 and second % first == 0 and second * second == first * third:
        power: int = (second // first) ** min(rounds, _MOST_DOUBLINGS)
        return min(third * power, LARGEST_DIM)
    return third


def _values_after(parts: Sequence[Array | None], rounds: int) -> Array | None:
    """Return numbers `rounds` rounds later if each grows by a fixed sum; None otherwise."""
    first, second, third = parts
    if first is None or second is None or third is None or not first.shape == second.shape == third.shape:
        return None
    # Texts and booleans do not grow by a sum.
    if third.dtype.kind not in "iuf":
        return third if np.array_equal(second, third) else None
    step = third - second
    # Two equal steps count as a law.
    if not np.array_equal(step, second - first):
        return None
    try:
        later = [
            number + rounds * add
            for number, add in zip(third.ravel().tolist(), step.ravel().tolist(), strict=True)
        ]
        return np.array(later, third.dtype).reshape(third.shape)
    except OverflowError:
        return None
