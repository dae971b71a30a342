"""Samples of recorded values, so that any two values of two models can be compared without keeping all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from zlib import crc32

import numpy as np

from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["Sample", "sample_of"]

_ELEMENTS = 1 << 16
"""Elements that a sample keeps of a value. A larger value is sampled all over, and two projections stand for the rest."""

_KINDS = {"f": "f", "V": "f", "i": "i", "u": "i", "b": "b", "O": "s", "S": "s", "U": "s"}

_SPREAD = 3.0
"""Standard deviations between the projections of two values that differ by rounding alone, at most."""


@dataclass(frozen=True)
class Sample:
    """Some elements of a value, in the order of memory, and two projections of all of them.

    Values of other shapes with the same elements, for example before and after a Reshape, have the same sample.
    """

    kind: str
    """ "f" for floats, "i" for integers, "b" for truth values, "s" for texts, whose elements are digests."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    elements: Array
    largest: float
    """The largest finite magnitude."""
    uniform: bool
    """Whether all elements are the same, so that the value agrees with others by chance."""
    projections: tuple[float, float]

    @property
    def size(self) -> int:
        """Return the number of elements of the whole value."""
        return int(np.prod(self.shape, dtype=np.int64))

    def error(self, other: Sample) -> float:
        """Return the largest difference from another value with the same number of elements.

        The difference is a share of the larger of their largest values. It is infinite if the kinds differ, or if NaN or infinity
        is at other positions. Integers and truth values have an error of 0 or 1.
        """
        if self.kind != other.kind or self.size != other.size:
            return float("inf")
        # Integers agree exactly or not at all.
        if self.kind != "f":
            same = np.array_equal(self.elements, other.elements) and self.projections == other.projections
            return 0.0 if same else 1.0
        finite = np.isfinite(self.elements)
        ours, theirs = self.elements[~finite], other.elements[~finite]
        if not np.array_equal(finite, np.isfinite(other.elements)) or not np.array_equal(
            ours, theirs, equal_nan=True
        ):
            return float("inf")
        scale = max(self.largest, other.largest)
        if not scale:
            return 0.0
        apart = np.abs(self.elements[finite] - other.elements[finite])
        rest = max(
            abs(ours_projected - theirs_projected)
            for ours_projected, theirs_projected in zip(self.projections, other.projections, strict=True)
        )
        # A projection adds rounding errors of all elements.
        spread = _SPREAD * np.sqrt(self.size)
        return float(max(apart.max(initial=0.0), rest / spread) / scale)


def sample_of(value: Any) -> Sample | None:
    """Return the sample of a tensor, or of the tensors of a sequence behind each other; None for maps and absent optionals."""
    if isinstance(value, list) and value and all(isinstance(part, np.ndarray) for part in value):
        kinds = {part.dtype for part in value}
        value = np.concatenate([part.reshape(-1) for part in value]) if len(kinds) == 1 else None
    if not isinstance(value, np.ndarray):
        return None
    kind = _KINDS.get(value.dtype.kind)
    if kind is None or not value.size:
        return None
    flat = value.reshape(-1)
    if kind == "s":
        flat = np.array([crc32(str(text).encode("utf-8", "surrogatepass")) for text in flat], np.int64)
    flat = flat.astype(np.float64 if kind == "f" else np.int64)
    elements = flat if flat.size <= _ELEMENTS else flat[_positions(flat.size)]
    finite = np.where(np.isfinite(flat), flat, 0) if kind == "f" else flat
    # A one-element fault moves both projections by as much as it moves the element.
    projections = [float((finite * _signs(flat.size, seed)).sum()) for seed in (1, 2)]
    return Sample(
        kind,
        value.dtype,
        value.shape,
        elements.copy(),
        float(np.abs(finite).max()),
        bool((flat == flat[0]).all()),
        (projections[0], projections[1]),
    )


@lru_cache(maxsize=8)
def _positions(size: int) -> Array:
    chosen: Array = np.sort(np.random.default_rng(size).choice(size, _ELEMENTS, replace=False))
    return chosen


@lru_cache(maxsize=16)
def _signs(size: int, seed: int) -> Array:
    signs: Array = np.random.default_rng((seed, size)).integers(0, 2, size, np.int8) * 2 - 1
    return signs
