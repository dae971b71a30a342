"""One input of a model for which corner values are made, and the values with the elements that must not be moved."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.constraints.ranges import Range
from onnx_migrate.verify.inputs.corners.flow import Meeting
from onnx_migrate.verify.inputs.corners.interest import Interest
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["CornerValue", "InputValue", "scattered"]


@dataclass(frozen=True)
class InputValue:
    """An input: `base` are random values of it, `accepted` is the range that its nodes accept, None for any."""

    name: str
    base: Array
    accepted: Range | None
    interest: Interest
    meetings: tuple[Meeting, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements."""
        dtype: np.dtype[Any] = self.base.dtype
        return dtype

    @property
    def is_restricted(self) -> bool:
        """Whether nodes accept only a part of the type's numbers, for example only indices."""
        accepted = self.accepted
        return accepted is not None and not (accepted.weak or accepted.discrete or accepted.domain)

    @property
    def is_mask(self) -> bool:
        """Whether the values say which elements count: booleans, and numbers that are called masks or used as such."""
        if self.dtype == bool:
            return True
        called = "mask" in self.name.lower()
        accepted = self.accepted
        used = accepted is not None and accepted.weak and (accepted.low, accepted.high) == (0, 1)
        return self.dtype.kind in "iuf" and (called or used) and (self.dtype.kind != "f" or called)

    def read_at(self, operator: str, index: int) -> Meeting | None:
        """Return the node of an operator that reads the elements of this input at a position; None if no node does."""
        for meeting in self.meetings:
            if meeting.argument.node.op_type == operator and meeting.argument.index == index:
                return meeting
        return None


@dataclass(frozen=True)
class CornerValue:
    """Values of an input. `fixed` marks the elements whose exact number matters; None stands for none."""

    values: Array
    fixed: Array | None = None


def scattered(base: Array, pool: Array, rng: np.random.Generator, start: int, share: float) -> CornerValue:
    """Return values in which a share of the elements, at random positions, comes from `pool` in turn, from `start` on."""
    size = prod(base.shape)
    count = max(1, round(size * share)) if size else 0
    positions = rng.permutation(size)[:count]
    values, fixed = base.copy().reshape(-1), np.zeros(size, bool)
    values[positions] = pool[(start + np.arange(count)) % len(pool)]
    fixed[positions] = True
    return CornerValue(values.reshape(base.shape), fixed.reshape(base.shape))
