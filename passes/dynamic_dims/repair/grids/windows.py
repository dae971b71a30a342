"""The masks of shifted windows, as in Swin: a window on the last row or column holds parts of the image that are not neighbours.

The mask of a window is 0 where both positions come from the same part, else a large negative number. It depends only on
whether the window is in the last row, and whether it is in the last column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from ..domain import Array
from .structure import Segment

__all__ = ["WindowMasks", "window_masks"]


@dataclass(frozen=True)
class WindowMasks:
    """The masks of windows in `segment`; `masks` has four: inside, last column, last row, and both."""

    segment: Segment
    masks: Array


def window_masks(parts: Sequence[Segment]) -> WindowMasks | None:
    """Return the masks of a table of shifted windows; None if it is no such table."""
    if len(parts) != 1 or len(parts[0].map_axes) != 2:
        return None
    part = parts[0]
    rows, columns = part.map_axes
    fixed = [axis for axis in part.axes if isinstance(axis, int)]
    count = fixed[-1] if len(fixed) >= 2 else 0
    window = isqrt(count)
    if window < 2 or window * window != count or fixed[-2:] != [count, count] or set(fixed[:-2]) - {1}:
        return None
    # The reshape below needs rows and columns side by side.
    if columns != rows + 1:
        return None
    numbers = part.array.reshape(part.dim(rows).frozen, part.dim(columns).frozen, count, count)
    values = np.unique(numbers)
    if len(values) != 2 or values[1] != 0:
        return None
    for shift in range(1, window):
        masks = np.where(_parts_differ(window, shift), values[0], values[1]).astype(numbers.dtype)
        last_row = np.arange(numbers.shape[0])[:, None] == numbers.shape[0] - 1
        last_column = np.arange(numbers.shape[1]) == numbers.shape[1] - 1
        if np.array_equal(masks[2 * last_row + last_column], numbers):
            return WindowMasks(part, masks)
    return None


def _parts_differ(window: int, shift: int) -> Array:
    """Return for the four cases which pairs of positions in a window come from different parts."""
    moved = np.arange(window) >= window - shift
    never = np.zeros(window, bool)
    cases = [(never, never), (never, moved), (moved, never), (moved, moved)]
    parts = [(2 * down[:, None] + across).reshape(-1) for down, across in cases]
    return np.stack([part[:, None] != part for part in parts])
