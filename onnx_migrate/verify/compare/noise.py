"""How much the original's outputs change by rounding alone: measured, by running it again in ways that only round differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from onnx_migrate.verdicts import Comparison
from onnx_migrate.verify.compare.arrays import (
    flatten,
    is_float,
    largest_difference,
    scale_of,
    typical_difference,
)
from onnx_migrate.verify.compare.comparison import OTHER_ELEMENTS, compare
from onnx_migrate.verify.compare.difference import finite_parts
from onnx_migrate.verify.compare.rounding import NO_ROUNDING, Rounding, rounding_between, share_of_noise
from onnx_migrate.verify.compare.spread import with_spread
from onnx_migrate.verify.compare.tolerance import Tolerance

__all__ = ["Noise", "perturbed_by_ulp"]

_RARE = 100
"""One of so many elements of a quantised model may be another whole number."""


class Noise:
    """The largest difference observed between runs of the original, per feed and output, and each output's scale.

    `runs` holds the outputs by name of the run that others are compared with, one mapping for each feed. The scale of
    an output is its largest finite magnitude over all feeds. `unstable_shapes` are outputs whose shape, or presence of
    an optional, changed between runs.
    """

    def __init__(self, runs: Sequence[Mapping[str, Any]]) -> None:
        self._runs = runs
        self._observed: dict[tuple[str, int], float] = {}
        self._scales: dict[str, float] = {}
        for run in runs:
            for name, value in run.items():
                for part, array in flatten(name, value):
                    self._scales[part] = max(self._scales.get(part, 0.0), scale_of(array))
        self.unstable_shapes: set[str] = set()
        self._typical: dict[tuple[str, int], float] = {}
        self._changed: dict[tuple[str, int], float] = {}
        self._proved: dict[tuple[str, int], Rounding] = {}

    def observe(self, index: int, again: Mapping[str, Any]) -> None:
        """Record how far another run of the original is from the first on feed `index`.

        The run is one that may differ by rounding only: on inputs perturbed by an ulp, at another optimisation level,
        or in another runtime.
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
                key = part, index
                self._observed[key] = max(self._observed.get(key, 0.0), largest_difference(array, other))
                self._typical[key] = max(self._typical.get(key, 0.0), typical_difference(array, other))
                self._changed[key] = max(self._changed.get(key, 0.0), share_of_noise(array, other))

    def observe_proved(self, index: int, again: Mapping[str, Any]) -> None:
        """Record a run, on feed `index`, of another model whose differences are proved to be rounding only.

        Its values may differ by twice as much again, also where no run of the original shows that much.
        """
        self.observe(index, again)
        for name, value in self._runs[index].items():
            there = dict(flatten(name, again.get(name)))
            for part, array in flatten(name, value):
                other = there.get(part)
                if array is not None and other is not None and array.shape == other.shape:
                    self._proved[part, index] = rounding_between(array, other)

    def assume(self, run: Mapping[str, Any]) -> None:
        """Take another feed's run into account that was made once: what rounding changes in it is in proportion.

        It is as large, relative to the scale, as on the feed before.
        """
        index = len(self._runs)
        for name, value in run.items():
            for part, array in flatten(name, value):
                scale, before = scale_of(array), self._scales.get(part, 0.0)
                ratio = scale / before if before else 1.0
                for known in (self._observed, self._typical):
                    if (part, index - 1) in known:
                        known[part, index] = known[part, index - 1] * ratio
                self._scales[part] = max(before, scale)

    def undetermined(self) -> dict[str, float]:
        """Return the discrete outputs that rounding changes throughout on every feed, with the share that changes.

        More than a hundredth of the elements, and more than one, then change in the original itself.
        """
        found: dict[str, float] = {}
        for name in {name for run in self._runs for name in run}:
            parts = [
                min(
                    (self._changed.get((part, index), 0.0) for part, _ in flatten(name, run[name])),
                    default=0.0,
                )
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
            if compare(
                part, a, b, Tolerance(ceiling=share), float("inf"), self._scales[part], discrete_noise=True
            ).problem
        }

    def compare(
        self, output: str, before: Any, after: Any, index: int, tolerance: Tolerance
    ) -> list[Comparison]:
        """Compare an output of original and result on feed `index`, one entry for each tensor in it.

        Returns nothing for an output whose shape is unstable.
        """
        if output in self.unstable_shapes:
            return []
        here, there = flatten(output, before), flatten(output, after)
        if [name for name, _ in here] != [name for name, _ in there]:
            return [Comparison(output, None, None, "container", "container", problem=OTHER_ELEMENTS)]
        entries = []
        for (part, a), (_, b) in zip(here, there, strict=True):
            observed = self._observed.get((part, index), 0.0)
            entry = compare(
                part,
                a,
                b,
                tolerance,
                observed,
                self._scales[part],
                discrete_noise=observed == float("inf"),
                typical_noise=self._typical.get((part, index), float("inf")),
                proved=self._proved.get((part, index), NO_ROUNDING),
            )
            entries.append(with_spread(entry, a, b))
        return entries

    def are_rare_steps(self, entries: Sequence[Comparison], output: str, before: Any, after: Any) -> bool:
        """Whether a hundredth of an output's elements at most differs by more than `entries` allow, by a hundredth of its scale.

        `entries` compare the same two values.
        """
        here, there = flatten(output, before), flatten(output, after)
        if [name for name, _ in here] != [name for name, _ in there]:
            return False
        for entry, (part, a), (_, b) in zip(entries, here, there, strict=True):
            found = compare(part, a, b, Tolerance(), float("inf"), self._scales[part], discrete_noise=True)
            if found.problem:
                return False
            if a is not None and b is not None and is_float(a):
                beyond = sum(int(np.count_nonzero(error > entry.allowed)) for _, error in finite_parts(a, b))
            else:
                beyond = found.differing
            if beyond > max(1, found.elements // _RARE):
                return False
        return True


def perturbed_by_ulp(feed: Mapping[str, Any], seed: int, exact: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the feed with every nonzero float replaced by the next larger or smaller one, at random.

    The inputs `exact` stay as they are.
    """
    rng = np.random.default_rng([seed, 1])
    moved = dict(feed)
    for name, value in feed.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.dtype.isbuiltin == 1:
            towards = np.where(rng.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
            if name not in exact:
                moved[name] = np.where(value == 0, value, np.nextafter(value, towards))
    return moved
