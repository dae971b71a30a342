"""Finds the values that are the same numbers in two models. Their names and the nodes between them may differ."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.narrow_floats import is_narrow
from onnx_migrate.verify.evaluators import Runnable

from .records import Recorded
from .samples import Sample

__all__ = ["Agreement"]

_AGREES, _AGREES_NARROW = 1e-4, 2e-2
"""Error up to which two values agree, of float32 and of narrower floats: rounding adds up along a deep model."""

_SMALLEST = 4e-6
"""Error up to which two float32 values agree however close the outputs are."""

_SHARE = 0.01
"""Share of the outputs' error that two values which agree may differ by."""


@dataclass(frozen=True)
class Agreement:
    """The values of two models that agree on one input, by their numbers. `named` pairs values of equal names or structure."""

    original: Recorded
    other: Recorded
    named: Mapping[str, str]
    """Values of the other model by those of the original."""
    renamed: Runnable
    """The other model, whose values have the names of those of the original that they are paired with."""
    exactly: bool = False
    """Whether values agree only if they are equal. A fault in small elements is below the share of the largest value."""

    @cached_property
    def outputs(self) -> dict[str, float]:
        """The error of each output of the models, whose names are equal."""
        names = [output.name for output in self.original.model.graph.output]
        pairs = [(name, self.original.samples.get(name), self.other.samples.get(name)) for name in names]
        return {
            name: sample.error(other_sample)
            for name, sample, other_sample in pairs
            if sample is not None and other_sample is not None
        }

    @cached_property
    def limit(self) -> float:
        """The error up to which two values agree, as a share of their largest value."""
        if self.exactly:
            return 0.0
        narrow = any(is_narrow(side.model) for side in (self.original, self.other))
        worst = max(self.outputs.values(), default=0.0)
        return float(np.clip(worst * _SHARE, _SMALLEST, _AGREES_NARROW if narrow else _AGREES))

    @cached_property
    def differing(self) -> list[str]:
        """The outputs that do not agree. If all agree, as saturated ones do, the inner values of one name that do not."""
        outputs = [name for name, error in self.outputs.items() if error > self.limit]
        inner = (value for value, other in self.counterparts() if value == other)
        return outputs or [name for name in inner if self.error(name, name) > self.limit]

    def error(self, value: str, other: str) -> float:
        """Return the error between two values; infinite if one was not recorded."""
        sample, other_sample = self.original.samples.get(value), self.other.samples.get(other)
        return sample.error(other_sample) if sample is not None and other_sample is not None else float("inf")

    @cached_property
    def names(self) -> dict[str, str]:
        """The original's values by those of the other model: the inverse of `named`."""
        return {other: value for value, other in self.named.items()}

    @cached_property
    def partners(self) -> dict[str, str]:
        """For each value of the other model that agrees with one of the original, the original's value."""
        partner_values: dict[str, str] = {}
        for name, sample in self.other.samples.items():
            value = self.names.get(name, "")
            if (value in self.original.samples and self.error(value, name) <= self.limit) or (
                value := self._by_numbers(sample)
            ):
                partner_values[name] = value
        return partner_values

    def counterparts(self) -> Iterator[tuple[str, str]]:
        """Yield each value that the original computes with its counterpart: one that agrees, else that of the same name.

        A value of the same name does not count if its numbers are those of another value, for example after a fold.
        """
        agreeing = {self.original.value_of(value): other for other, value in self.partners.items()}
        for value in self.original.varying:
            sample, other = self.original.samples.get(value), agreeing.get(value, self.named.get(value, ""))
            theirs = self.other.samples.get(other)
            is_another = self.original.value_of(self.partners.get(other, value)) != value
            if sample is not None and theirs is not None and sample.shape == theirs.shape and not is_another:
                yield value, other

    def has(self, sample: Sample | None) -> bool:
        """Return whether the original computes a value that agrees with a sample."""
        return sample is not None and bool(self._by_numbers(sample))

    def _by_numbers(self, sample: Sample) -> str:
        """Return a value of the original that agrees with a sample; "" if none does, or all of its elements are the same."""
        if sample.uniform:
            return ""
        samples = self.original.samples
        near = self._by_size.near(sample, self.limit)
        return next((name for name in near if samples[name].error(sample) <= self.limit), "")

    @cached_property
    def _by_size(self) -> _BySize:
        return _BySize(self.original.samples)

    @cached_property
    def agreeing(self) -> frozenset[str]:
        """The values of the original that agree with one of the other model."""
        return frozenset(map(self.original.value_of, self.partners.values())) | {
            value for value, other in self.named.items() if self.error(value, other) <= self.limit
        }


class _BySize:
    """Samples by their kinds and numbers of elements, in the order of a projection, so that near ones are soon found."""

    def __init__(self, samples: Mapping[str, Sample]) -> None:
        self._rows: dict[tuple[str, int], list[tuple[float, str]]] = {}
        for name, sample in samples.items():
            self._rows.setdefault((sample.kind, sample.size), []).append((sample.projections[0], name))
        for rows in self._rows.values():
            rows.sort()

    def near(self, sample: Sample, limit: float) -> Iterator[str]:
        """Yield the values whose projection is as near as rounding within `limit` leaves it."""
        rows = self._rows.get((sample.kind, sample.size), [])
        width = 4 * limit * sample.largest * float(np.sqrt(sample.size))
        middle = sample.projections[0]
        # The values are sorted by their projection, so the search is short.
        for index in range(bisect_left(rows, (middle - width, "")), len(rows)):
            if rows[index][0] > middle + width:
                return
            yield rows[index][1]
