"""How much the original's outputs change by rounding alone: measured, by running it again in ways that only round differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_migrate.messages import count_of
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verify.compare.arrays import Array, differing_bits, flatten, is_float, paired, scale_of
from onnx_migrate.verify.compare.comparison import (
    NOTHING_OBSERVED,
    OTHER_ELEMENTS,
    Difference,
    Observed,
    Rounding,
    Tolerance,
    compare,
    finite_parts,
)
from onnx_migrate.verify.compare.spread import with_spread

__all__ = ["Noise", "beyond_rounding", "rounding_between", "share_of_noise"]


_RARE = 100
"""Of so many elements one may be rounded to the neighbouring number: of a type as coarse as float16, of a quantised model."""


def rounding_between(original: Array, result: Array) -> Rounding:
    """Return what rounding changed between two runs, whose values have the same shape."""
    if is_float(original) and original.dtype == result.dtype:
        return Rounding(Difference.between(original, result).largest, differing_bits(original, result))
    elements = int(np.count_nonzero(original != result))
    steps = (
        np.abs(original.astype(np.float64) - result.astype(np.float64))
        if original.dtype.kind in "iu"
        else 0.0
    )
    return Rounding(float(np.max(steps, initial=0.0)), elements)


def share_of_noise(original: Array, result: Array) -> float:
    """Return the share of a discrete value's elements that changed, 0 where it is small enough to be ties.

    A byte of a quantised model that moves by one step is no change.
    """
    if is_float(original):
        return 0.0
    unequal = np.asarray(original != result)
    if original.dtype in (np.int8, np.uint8):
        unequal = np.abs(original.astype(np.int16) - result.astype(np.int16)) > 1
    changed = int(np.count_nonzero(unequal))
    return changed / original.size if changed > max(1, original.size // _RARE) else 0.0


def beyond_rounding(original: Array, result: Array, ulps: float) -> str:
    """Describe how a value differs by more than a kernel may round differently; "" where it does not.

    Sums in another order move an element by a few units in the last place of the largest: `ulps` of them are allowed.
    In float16 kernels compute in float32 and round once, so that an element is at most one unit off, and rarely.
    Integers must be equal.
    """
    if original.shape != result.shape or original.dtype != result.dtype:
        return f"{original.dtype}{list(original.shape)} became {result.dtype}{list(result.shape)}"
    if not is_float(original):
        differing = int(np.count_nonzero(original != result))
        return f"{differing} of {count_of(original.size, 'element')} are not equal" if differing else ""
    found, differing = Difference.between(original, result), differing_bits(original, result)
    largest, scale = found.largest, found.scale
    if found.problem:
        return "NaN or infinities are at different positions"
    eps, tiny = float(np.finfo(original.dtype).eps), float(np.finfo(original.dtype).tiny)
    if original.dtype.itemsize < 4:
        parts = finite_parts(original, result)
        neighbours = all(np.all(error <= eps * np.maximum(magnitude, tiny)) for magnitude, error in parts)
        explained = neighbours and differing <= max(1, original.size // _RARE)
    else:
        explained = largest <= ulps * eps * scale
    if explained or not differing:
        return ""
    relative = f" ({largest / scale:.3g} of the largest magnitude)" if scale else ""
    return f"{differing} of {count_of(original.size, 'element')} differ, by up to {largest:.3g}{relative}"


class Noise:
    """The largest difference observed between runs of the original, per feed and output, and each output's scale.

    `runs` holds the outputs by name of the run that others are compared with, one mapping for each feed. The scale of
    an output is its largest finite magnitude over all feeds. `unstable_shapes` are outputs whose shape, or presence of
    an optional, changed between runs.
    """

    def __init__(self, runs: Sequence[Mapping[str, Any]]) -> None:
        self._runs = runs
        self._observed: dict[tuple[str, int], Observed] = {}
        """What rounding changes in each tensor, by the position of the feed."""
        self._scales: dict[str, float] = {}
        for run in runs:
            for name, value in run.items():
                for part, array in flatten(name, value):
                    self._scales[part] = max(self._scales.get(part, 0.0), scale_of(array))
        self.unstable_shapes: set[str] = set()

    def observe(self, index: int, again: Mapping[str, Any], *, proved: bool = False) -> None:
        """Record how far another run of the original is from the first on feed `index`.

        The run is one that may differ by rounding only: on inputs perturbed by an ulp, at another optimisation level,
        or in another runtime. A `proved` one is of another model whose differences are proved to be rounding only: values may
        differ by twice as much again, also where no run of the original shows that much.
        """
        for name, value in self._runs[index].items():
            if name not in again:
                continue
            here, there = flatten(name, value), dict(flatten(name, again[name]))
            for part, array in here:
                other = there.get(part)
                if array is None or other is None or array.shape != other.shape:
                    if array is not None or other is not None:
                        self.unstable_shapes.add(name)
                    continue
                known = self._observed.get((part, index), Observed(typical=0.0))
                found = Difference.between(array, other)
                self._observed[part, index] = replace(
                    known,
                    largest=max(known.largest, found.largest),
                    typical=max(known.typical, found.typical),
                    changed=max(known.changed, share_of_noise(array, other)),
                    proved=rounding_between(array, other) if proved else known.proved,
                )

    def assume(self, run: Mapping[str, Any]) -> None:
        """Take another feed's run into account that was made once: what rounding changes in it is in proportion.

        It is as large, relative to the scale, as on the feed before.
        """
        index = len(self._runs)
        for name, value in run.items():
            for part, array in flatten(name, value):
                scale, known = scale_of(array), self._scales.get(part, 0.0)
                ratio = scale / known if known else 1.0
                if noise := self._observed.get((part, index - 1)):
                    largest, typical = noise.largest * ratio, noise.typical * ratio
                    self._observed[part, index] = Observed(largest, typical)
                self._scales[part] = max(known, scale)

    def undetermined(self) -> dict[str, float]:
        """Return the discrete outputs that rounding changes throughout on every feed, with the share that changes.

        More than a hundredth of the elements, and more than one, then change in the original itself.
        """
        found: dict[str, float] = {}
        for name in {name for run in self._runs for name in run}:
            parts = [
                min((self._known(part, index).changed for part, _ in flatten(name, run[name])), default=0.0)
                for index, run in enumerate(self._runs)
            ]
            if min(parts) > 0:
                found[name] = min(parts)
        return found

    def outputs_beyond(self, share: float, index: int, again: Mapping[str, Any]) -> set[str]:
        """Return the outputs of which another run on feed `index` differs by more than a share of the output's scale.

        No rounding explains more than a hundredth, the largest noise that a tolerance accepts (`Tolerance.ceiling`).
        """
        return {
            name
            for name, value in self._runs[index].items()
            for (part, a), (_, b) in zip(flatten(name, value), flatten(name, again[name]), strict=False)
            if compare(part, a, b, Tolerance(ceiling=share), self._anything(part)).problem
        }

    def compare(
        self, output: str, original: Any, result: Any, index: int, tolerance: Tolerance
    ) -> list[Comparison]:
        """Compare an output of original and result on feed `index`, one entry for each tensor in it.

        Returns nothing for an output whose shape is unstable.
        """
        if output in self.unstable_shapes:
            return []
        parts = paired(output, original, result)
        if parts is None:
            return [Comparison(output, None, None, "container", "container", problem=OTHER_ELEMENTS)]
        return [
            with_spread(compare(part, a, b, tolerance, self._known(part, index)), a, b)
            for part, a, b in parts
        ]

    def are_rare_steps(self, entries: Sequence[Comparison], output: str, original: Any, result: Any) -> bool:
        """Whether a hundredth of an output's elements at most differs by more than `entries` allow, by a hundredth of its scale.

        `entries` compare the same two values.
        """
        parts = paired(output, original, result)
        if parts is None:
            return False
        for entry, (part, a, b) in zip(entries, parts, strict=True):
            found = compare(part, a, b, Tolerance(), self._anything(part))
            if found.problem:
                return False
            if a is not None and b is not None and is_float(a):
                beyond = sum(int(np.count_nonzero(error > entry.allowed)) for _, error in finite_parts(a, b))
            else:
                beyond = found.differing
            if beyond > max(1, found.elements // _RARE):
                return False
        return True

    def _known(self, part: str, index: int) -> Observed:
        """Return what rounding changes in a tensor on a feed, with the scale of all feeds."""
        return replace(self._observed.get((part, index), NOTHING_OBSERVED), scale=self._scales[part])

    def _anything(self, part: str) -> Observed:
        """Return what is known of a tensor in which rounding may change as much as a tolerance accepts at most."""
        return Observed(float("inf"), scale=self._scales[part])
