"""How much the original's outputs change by rounding alone: measured, by running it again in ways that only round differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_migrate.verdicts import Comparison
from onnx_migrate.verify.compare.bits import OTHER_ELEMENTS
from onnx_migrate.verify.compare.spread import with_spread
from onnx_migrate.verify.compare.values import flatten, paired, scale_of
from onnx_migrate.verify.kernel import Explanation, Measurement, Observation, Tolerance, judge
from onnx_migrate.verify.kernel.arrays import Array, differing_bits, is_float
from onnx_migrate.verify.kernel.decision import Coverage, coverage
from onnx_migrate.verify.kernel.difference import Difference
from onnx_migrate.verify.kernel.limits import DECISIONS

__all__ = ["Noise", "share_of_noise", "with_run"]


def share_of_noise(original: Array, again: Array) -> float:
    """Return the share of a discrete value's elements that changed, 0 if they are few enough to be ties.

    A byte of a quantised model that moves by one step does not count.
    """
    if is_float(original):
        return 0.0
    unequal = np.asarray(original != again)
    if original.dtype in (np.int8, np.uint8):
        # A difference of 8-bit integers would wrap around.
        unequal = np.abs(original.astype(np.int16) - again.astype(np.int16)) > 1
    changed = int(np.count_nonzero(unequal))
    return changed / original.size if changed > _few(original) else 0.0


def _few(array: Array) -> float:
    """Return how many elements of an array rounding may decide."""
    return max(1, array.size * DECISIONS)


def _unstable(original: Array, again: Array) -> Array | None:
    """Return the elements that no run of the original decides; None if there are none.

    These are discrete elements that change, and floats that are NaN or infinite in one of two runs only.
    """
    if not is_float(original):
        unequal = np.asarray(original != again)
        return unequal if unequal.any() else None
    if not Difference.between(original, again).problem:
        return None
    a, b = original.astype(np.float64), again.astype(np.float64)
    same = (np.isfinite(a) & np.isfinite(b)) | (a == b) | (np.isnan(a) & np.isnan(b))
    return np.asarray(~same)


def with_run(known: Measurement, original: Array, again: Array) -> Measurement:
    """Return a measurement with one more run of the original, of the same shape."""
    gap = Difference.between(original, again)
    if original.shape != again.shape:
        return replace(known, largest=gap.largest)
    return replace(
        known,
        largest=max(known.largest, gap.largest),
        typical=gap.typical if np.isinf(known.typical) else max(known.typical, gap.typical),
        unstable=_joined(known.unstable, _unstable(original, again)),
    )


def _joined(one: Array | None, other: Array | None) -> Array | None:
    """Return the union of two masks of the same shape."""
    if one is None or other is None or one.shape != other.shape:
        return other if one is None else one
    return one | other


class Noise:
    """The largest difference observed between runs of the original, per feed and output, and each output's scale.

    `runs` holds the outputs by name of the run that others are compared with, one mapping for each feed. The scale of
    an output is its largest finite magnitude over all feeds. `unstable_shapes` are outputs whose shape, or presence of
    an optional, changed between runs.
    """

    def __init__(self, runs: Sequence[Mapping[str, Any]]) -> None:
        self._runs = runs
        self._measured: dict[tuple[str, int], Measurement] = {}
        """The measured effect of rounding on each tensor, by the position of the feed."""
        self._scales: dict[str, float] = {}
        self._changed: dict[tuple[str, int], float] = {}
        """The largest share of discrete elements that one run changed, by tensor and feed."""
        for run in runs:
            for name, value in run.items():
                for part, array in flatten(name, value):
                    self._scales[part] = max(self._scales.get(part, 0.0), scale_of(array))
        self.unstable_shapes: set[str] = set()

    def observe(self, index: int, again: Mapping[str, Any]) -> None:
        """Record the difference between another run of the original and the first on feed `index`.

        That run may differ by rounding only: on inputs perturbed by an ulp, at another optimisation level, or in another runtime.
        """
        for name, value in self._runs[index].items():
            if name not in again:
                continue
            here, there = flatten(name, value), dict(flatten(name, again[name]))
            for part, array in here:
                other = there.get(part)
                if array is None or other is None or array.shape != other.shape:
                    # An absent optional in both runs is no difference of shape.
                    if array is not None or other is not None:
                        self.unstable_shapes.add(name)
                    continue
                self._observe_tensor(part, index, array, other)

    def _observe_tensor(self, part: str, index: int, array: Array, other: Array) -> None:
        measurement = self._measured.get((part, index), Measurement())
        self._measured[part, index] = with_run(measurement, array, other)
        self._changed[part, index] = max(self._changed.get((part, index), 0.0), share_of_noise(array, other))

    def explain(self, index: int, output: str, result: Any) -> None:
        """Record that rounding of single nodes explains how a result differs in an output on feed `index`.

        The result's nodes compute this output again from the original's own inner values.
        """
        for part, a, b in paired(output, self._runs[index][output], result) or ():
            # Other shapes have no common elements.
            if a is None or b is None or a.shape != b.shape or a.dtype != b.dtype:
                continue
            # Floats are compared bit by bit, because 0 and -0 differ.
            differing = differing_bits(a, b) if is_float(a) else int(np.count_nonzero(a != b))
            explanation = Explanation(Difference.between(a, b).largest if is_float(a) else 0.0, differing)
            measurement = self._measured.get((part, index), Measurement())
            self._measured[part, index] = replace(measurement, explanation=explanation)

    def leave_out(self, index: int, output: str, undefined: Mapping[str, Array]) -> None:
        """Record the elements of an output's tensors that depend on results that the standard leaves undefined."""
        for part, _ in flatten(output, self._runs[index][output]):
            if part in undefined:
                measurement = self._measured.get((part, index), Measurement())
                self._measured[part, index] = replace(
                    measurement, undefined=_joined(measurement.undefined, undefined[part])
                )

    def defined(self, index: int, output: str, original: Any, result: Any) -> tuple[Any, Any]:
        """Return both values of an output with the same number in place of each undefined element."""
        masks = (self._measured.get((part, index)) for part, _ in flatten(output, original))
        if not any(measurement is not None and measurement.undefined is not None for measurement in masks):
            return original, result
        parts = paired(output, original, result) or ()
        pairs = [self._neutral(self._measured.get((part, index)), a, b) for part, a, b in parts]
        return pairs[0] if len(pairs) == 1 else ([a for a, _ in pairs], [b for _, b in pairs])

    def _neutral(
        self, known: Measurement | None, one: Array | None, other: Array | None
    ) -> tuple[Array | None, Array | None]:
        undefined = None if known is None else known.undefined
        if (
            undefined is None
            or one is None
            or other is None
            or not one.shape == other.shape == undefined.shape
        ):
            return one, other
        return one, np.where(undefined, one, other)

    def assume(self, run: Mapping[str, Any]) -> None:
        """Add another feed that was run once, and assume that rounding changes it in proportion to its scale.

        Relative to the scale, the change is as large as on the feed before.
        """
        index = len(self._runs)
        for name, value in run.items():
            for part, array in flatten(name, value):
                scale, known_scale = scale_of(array), self._scales.get(part, 0.0)
                ratio = scale / known_scale if known_scale else 1.0
                if noise := self._measured.get((part, index - 1)):
                    largest, typical = noise.largest * ratio, noise.typical * ratio
                    self._measured[part, index] = Measurement(largest, typical)
                self._scales[part] = max(known_scale, scale)

    def undetermined(self) -> dict[str, float]:
        """Return the discrete outputs that rounding changes throughout on every feed, with the share that changes.

        More than a hundredth of the elements, and more than one, then change in the original itself.
        """
        shares: dict[str, float] = {}
        for name in {name for run in self._runs for name in run}:
            parts = [
                min(
                    (self._changed.get((part, index), 0.0) for part, _ in flatten(name, run[name])),
                    default=0.0,
                )
                for index, run in enumerate(self._runs)
            ]
            if min(parts) > 0:
                shares[name] = min(parts)
        return shares

    def outputs_beyond(self, share: float, index: int, again: Mapping[str, Any]) -> set[str]:
        """Return the outputs that another run on feed `index` changes by more than a share of the output's scale."""
        return {
            name
            for name, value in self._runs[index].items()
            for (part, a), (_, b) in zip(flatten(name, value), flatten(name, again[name]), strict=False)
            if self._is_beyond(share, part, a, b)
        }

    def _is_beyond(self, share: float, part: str, one: Array | None, other: Array | None) -> bool:
        """Whether two runs of one tensor differ by more than a share of its scale, or in more than a few discrete elements."""
        if one is None or other is None or one.shape != other.shape or one.dtype != other.dtype:
            return one is not other
        if not is_float(one):
            return int(np.count_nonzero(one != other)) > _few(one)
        gap = Difference.between(one, other)
        return bool(gap.problem) or gap.largest > share * (gap.scale or self._scales[part])

    def compare(
        self, output: str, original: Any, result: Any, index: int, tolerance: Tolerance
    ) -> list[Comparison]:
        """Compare an output of original and result on feed `index`, one entry for each tensor in it.

        Returns nothing for an output whose shape is unstable.
        """
        return [entry for entry, _ in self.judged(output, original, result, index, tolerance)]

    def judged(
        self, output: str, original: Any, result: Any, index: int, tolerance: Tolerance
    ) -> list[tuple[Comparison, Coverage]]:
        """Return the result of `compare`, each entry with the compared part of the tensor."""
        # Outputs whose shape changes with rounding have no common elements.
        if output in self.unstable_shapes:
            return []
        parts = paired(output, original, result)
        if parts is None:
            other = Comparison(output, None, None, "container", "container", problem=OTHER_ELEMENTS)
            return [(other, Coverage())]
        seen = [Observation(part, a, b, tolerance, self._measurement(part, index)) for part, a, b in parts]
        judged = [(judge(observation), observation) for observation in seen]
        return [
            (with_spread(entry, observation.original, observation.result), coverage(observation, entry))
            for entry, observation in judged
        ]

    def are_rare_steps(self, entries: Sequence[Comparison], output: str, original: Any, result: Any) -> bool:
        """Whether a hundredth of an output's elements at most differs by more than `entries` allow, by a hundredth of its scale.

        `entries` compare the same two values.
        """
        parts = paired(output, original, result)
        if parts is None:
            return False
        return all(
            self._rare_steps(entry, part, a, b) for entry, (part, a, b) in zip(entries, parts, strict=True)
        )

    def _rare_steps(self, entry: Comparison, part: str, one: Array | None, other: Array | None) -> bool:
        if one is None or other is None or self._is_beyond(DECISIONS, part, one, other):
            return False
        return entry.agrees or _elements_beyond(entry.allowed, one, other) <= _few(one)

    def _measurement(self, part: str, index: int) -> Measurement:
        """Return the effect of rounding on a tensor for a feed, with the scale of all feeds."""
        return replace(self._measured.get((part, index), Measurement()), scale=self._scales[part])


def _elements_beyond(allowed: float, one: Array, other: Array) -> int:
    if not is_float(one):
        return int(np.count_nonzero(one != other))
    return int(np.count_nonzero(np.abs(one.astype(np.float64) - other.astype(np.float64)) > allowed))
