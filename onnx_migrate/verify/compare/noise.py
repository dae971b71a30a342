"""How much the original's outputs move by rounding alone, and what differs by more than that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx_migrate.verify.compare.arrays import Tolerance, compare, flat, noise, scale_of
from onnx_migrate.verify.verdict import Comparison

__all__ = ["Noise"]


class Noise:
    """The largest change heard of each output, per feed, and its scale over all feeds."""

    def __init__(self, runs: Sequence[Mapping[str, Any]]) -> None:
        self._runs = runs
        self._heard: dict[tuple[str, int], float] = {}
        self._scales: dict[str, float] = {}
        for run in runs:
            for name, value in run.items():
                for part, array in flat(name, value):
                    self._scales[part] = max(self._scales.get(part, 0.0), scale_of(array))
        self.unstable: set[str] = set()

    def listen(self, index: int, again: Mapping[str, Any]) -> None:
        """Take note of another run of the original on feed `index`, or on one a rounding away."""
        for name, value in self._runs[index].items():
            if name not in again:
                continue
            here, there = flat(name, value), dict(flat(name, again[name]))
            for part, array in here:
                other = there.get(part)
                if array is None or other is None or array.shape != other.shape:
                    if (array is None) != (other is None) or (array is not None and other is not None):
                        self.unstable.add(name)
                    continue
                key = part, index
                self._heard[key] = max(self._heard.get(key, 0.0), noise(array, other))

    def torn(self, index: int, again: Mapping[str, Any]) -> set[str]:
        """Return the outputs that another run gives so differently that no rounding explains it."""
        return {
            name
            for name, value in self._runs[index].items()
            for (part, a), (_, b) in zip(flat(name, value), flat(name, again[name]), strict=False)
            if compare(part, a, b, Tolerance(), float("inf"), self._scales[part], jumps=True).problem
        }

    def hold(
        self, output: str, before: Any, after: Any, index: int, tolerance: Tolerance
    ) -> list[Comparison]:
        """Compare an output of original and result on a feed; nothing where its shape is unstable."""
        if output in self.unstable:
            return []
        here, there = flat(output, before), flat(output, after)
        if [name for name, _ in here] != [name for name, _ in there]:
            return [Comparison(output, None, None, "container", "container", problem="holds other elements")]
        entries = []
        for (part, a), (_, b) in zip(here, there, strict=True):
            heard = self._heard.get((part, index), 0.0)
            jumps = heard == float("inf")
            entries.append(compare(part, a, b, tolerance, heard, self._scales[part], jumps=jumps))
        return entries
