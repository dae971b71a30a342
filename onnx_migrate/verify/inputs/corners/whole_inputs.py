"""Feeds in which every element of an input counts: beside constants, of equal elements, and of small sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.corners import integers
from onnx_migrate.verify.inputs.corners.beside import STEPS, Beside, beside
from onnx_migrate.verify.inputs.corners.corner_inputs import DRAW, CornerFeed, CornerInputs
from onnx_migrate.verify.inputs.corners.lengths import is_affordable, sizes_for
from onnx_migrate.verify.inputs.corners.thresholds import chooses_among_equals
from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue

__all__ = ["WholeInputs"]


@dataclass(frozen=True, eq=False)
class WholeInputs(CornerInputs):
    """The inputs of a model, for feeds without a random element in those inputs that the nodes treat differently."""

    def beside_constants(self, first: int, end: int) -> Iterator[CornerFeed]:
        """Yield feeds that put each element of an input beside the constant's element that it meets, three for each constant."""
        base = self._base("normal", 10)
        if base is None:
            return
        inputs, rng = self._values(base), self._rng(10)
        constants = {name: self._constants(value) for name, value in inputs.items() if self._is_any(value)}
        # The input with most constants decides how many feeds there are.
        for at in range(first, min(end, max(map(len, constants.values()), default=0))):
            met = {name: every[at] for name, every in constants.items() if at < len(every)}
            fitting = self._fitting(met, base)
            inputs = self._values(fitting)
            for turn in range(STEPS):
                corners = {
                    name: self._beside(inputs[name], constant, turn, rng) for name, constant in met.items()
                }
                yield from self._in_branches(f"beside a constant {STEPS * at + turn + 1}", fitting, corners)

    def _in_branches(
        self, name: str, base: Mapping[str, Any], made: Mapping[str, CornerValue | None]
    ) -> Iterator[CornerFeed]:
        """One feed, and one with all single flags turned: an If takes its other branch then."""
        flags = {
            key: CornerValue(np.asarray(~value.base))
            for key, value in self._values(base).items()
            if value.dtype == bool and value.base.size == 1
        }
        some = any(corner is not None for corner in made.values())
        # The other branch has thresholds of its own.
        for ending, more in (("", {}), (" with other flags", flags)) if flags else (("", {}),):
            feed = self._feed(name + ending, base, {**made, **more}) if some else None
            if feed is not None:
                yield CornerFeed(feed)

    def _fitting(self, met: Mapping[str, Beside], base: dict[str, Any]) -> dict[str, Any]:
        """Return random inputs as long as the constants on open dims, so that each element meets one; else `base`."""
        sizes: dict[str, int] = {}
        for name, constant in met.items():
            sizes.update(sizes_for(self.source, name, constant.constant.shape))
        if not sizes:
            return base
        source = replace(self.source, sizes={**self.source.sizes, **sizes})
        return (source.feed("normal", draw=DRAW + 10) if is_affordable(source) else None) or base

    def _beside(
        self, value: InputValue, met: Beside, turn: int, rng: np.random.Generator
    ) -> CornerValue | None:
        """Return values beside a constant; random ones in place of larger integers than the model takes."""
        corner, largest = beside(value, met, turn, rng), self._largest
        if corner is None or largest is None or value.dtype.kind == "f":
            return corner
        small = np.abs(corner.values.astype(np.float64)) <= largest
        return CornerValue(np.where(small, corner.values, value.base)) if small.any() else None

    def _is_any(self, value: InputValue) -> bool:
        """Whether an input of numbers may have any of its type: none is an index, a size or a number of turns."""
        return value.dtype.kind in "iuf" and not self._is_index(value) and not value.is_restricted

    def tied(self) -> Iterator[CornerFeed]:
        """Yield feeds for inputs in which a node chooses among equal elements: one number throughout, and two numbers."""
        base = self._base("normal", 11)
        if base is None:
            return
        rng = self._rng(11)
        tied = {
            name: value
            for name, value in self._values(base).items()
            # A choice needs two elements.
            if self._is_any(value) and value.base.size > 1 and self._chooses(value)
        }
        if not tied and self.flow.operators & {"ArgMax", "ArgMin"}:
            yield from self._zeros(base)
        for name, most in (("one number", 1), ("two numbers", 2)):
            corners: dict[str, CornerValue | None] = {
                key: CornerValue(
                    rng.integers(0, most, value.base.shape).astype(value.dtype),
                    np.ones(value.base.shape, bool),
                )
                for key, value in tied.items()
            }
            yield from self._in_branches(name, base, corners)

    def _zeros(self, base: Mapping[str, Any]) -> Iterator[CornerFeed]:
        """Yield inputs of zeros for a node that chooses among computed elements: sums of products of zeros are equal."""
        zeros: dict[str, CornerValue | None] = {
            name: CornerValue(np.zeros_like(value.base), np.ones(value.base.shape, bool))
            for name, value in self._values(base).items()
            if value.dtype.kind == "f" and not value.is_restricted
        }
        yield from self._in_branches("zeros", base, zeros)

    def of_few_sizes(self) -> Iterator[CornerFeed]:
        """Yield feeds with sizes of 1 and 2 for inputs that decide the size of a value: the recorded output may be empty."""
        base = self._base("normal", 12)
        if base is None:
            return
        sizes = {name: value for name, value in self._values(base).items() if integers.gives_sizes(value)}
        for size in (1, 2):
            corners: dict[str, CornerValue | None] = {
                name: CornerValue(np.full_like(value.base, size)) for name, value in sizes.items()
            }
            # The values are those of the usual feed, which was run before.
            if all(np.array_equal(base[name], corner.values) for name, corner in corners.items() if corner):
                continue
            feed = self._feed(f"values of size {size}", base, corners)
            if feed is not None:
                yield CornerFeed(feed)

    @staticmethod
    def _is_index(value: InputValue) -> bool:
        return value.dtype.kind == "i" and integers.is_index(value)

    @staticmethod
    def _chooses(value: InputValue) -> bool:
        return any(chooses_among_equals(meeting.argument) for meeting in value.meetings)
