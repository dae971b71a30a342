"""Packs the corners of all inputs into few feeds: each has other corners in other elements, and random values elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.corners import boxes, floats, integers, masks, texts
from onnx_migrate.verify.inputs.corners.beside import MOST_CONSTANTS
from onnx_migrate.verify.inputs.corners.corner_inputs import DRAW, CornerFeed
from onnx_migrate.verify.inputs.corners.lengths import is_affordable, other_sizes
from onnx_migrate.verify.inputs.corners.operators import (
    bounds_infinities,
    casts_to_integers,
    computes_integers_alone,
    keeps_infinities,
    keeps_nan,
    normalises,
)
from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue
from onnx_migrate.verify.inputs.corners.whole_inputs import WholeInputs
from onnx_migrate.verify.inputs.sizes import batch_keys, open_dims
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["MORE", "CornerFeed", "Corners"]

MORE = "more of normal"
"""The name of further random feeds for inputs of few elements."""

_NUMBERS = 1000
"""Random numbers that a model is run on at least, in all feeds together."""

_MOST_MORE = 3
"""Further random feeds at most: comparing a feed takes longer than a run of a small model."""

_MOST_FEEDS = 6
"""Feeds among which the thresholds of an input of few elements are shared out."""

_FEW = 6
"""An input with fewer elements has no room for NaN and both infinities in one feed."""

_MAGNITUDES = (1e30, 1e4)
"""Magnitudes of huge elements. The second one is used if the original does not stay finite on the first."""


@dataclass(frozen=True, eq=False)
class Corners(WholeInputs):
    """The corner feeds of a model, beside the random inputs at the sizes at which it runs.

    Without `magnitudes` only thresholds may be larger or smaller than random numbers.
    """

    def __iter__(self) -> Iterator[CornerFeed]:
        """Yield the feeds, those first that differ most from random ones."""
        yield from self._at_thresholds()
        yield from self.beside_constants(0, 1)
        yield from self.of_few_sizes()
        yield from self._masked()
        if self._takes_large:
            yield from self._of_magnitudes()
        yield from self.beside_constants(1, MOST_CONSTANTS)
        yield from self._at_other_sizes()
        yield from self._more()

    def packed(self) -> CornerFeed | None:
        """Return one feed with corners in some elements of every input, for a model that takes long; None if it has none."""
        base, first = self.source.feed("wide"), self.source.feed("normal")
        if base is None or first is None:
            return None
        inputs = self._values(base)
        # A fixed seed lets each run draw the same corners.
        rng = self._rng(7)
        mixed = {name: self._some(value, first[name], rng) for name, value in inputs.items()}
        feed = self._feed("corners", base, mixed)
        if feed is None:
            return None
        without = {name: corner for name, corner in mixed.items() if not self._is_index(inputs[name])}
        instead = self._feed("corners", base, without)
        return CornerFeed(feed, (instead,) if instead is not None else (), finite=True)

    def _some(self, value: InputValue, first: Array, rng: np.random.Generator) -> CornerValue | None:
        """Return values that are corners in part, for a model that runs only one feed beside `first`."""
        if self._is_index(value) and not value.interest.numbers:
            return None if self._scatters(value) else integers.with_minus_one(value, first)
        corner = self._mask(value, "padded masks", 0) or self._at(value, rng, 0)
        if corner is not None or not self._takes_large or not value.base.size:
            return corner
        if value.dtype.kind != "f" or value.is_restricted:
            return None
        far = floats.large(value, rng).values
        return CornerValue(np.where(rng.random(value.base.shape) < 0.02, far, value.base).astype(value.dtype))

    @staticmethod
    def _scatters(value: InputValue) -> bool:
        return any(integers.reduction(meeting.argument.node) for meeting in value.meetings)

    def _at_thresholds(self) -> Iterator[CornerFeed]:
        """Numbers, words and boxes at which the model treats an input differently, shared out among feeds."""
        first = self._base("normal", 0)
        if first is None:
            return
        needed = max((self._feeds_needed(value) for value in self._values(first).values()), default=0)
        for number in range(min(needed, _MOST_FEEDS)):
            base = first if not number else self._base("normal", number)
            assert base is not None
            inputs, rng = self._values(base), self._rng(number)
            corners = {name: self._at(value, rng, number) for name, value in inputs.items()}
            feed = self._feed("corners" if not number else f"corners {number + 1}", base, corners)
            if feed is not None:
                # An index at its limit may make the model fail, so the feed without it stands ready.
                calmer = {
                    name: corner for name, corner in corners.items() if not self._is_index(inputs[name])
                }
                instead = self._feed(feed.name, base, calmer) if len(calmer) < len(corners) else None
                yield CornerFeed(feed, () if instead is None else (instead,))
        yield from self._even(first)
        yield from self.tied()

    def _feeds_needed(self, value: InputValue) -> int:
        size = max(1, value.base.size)
        if value.dtype.kind == "f":
            groups = sum(ceil(len(group) / size) for group in floats.threshold_groups(value))
            return max(
                groups, 4 if value.interest.columns else 0, 1 if boxes.boxes(value, self._rng(0)) else 0
            )
        if value.dtype.kind == "O":
            return ceil(texts.count(value) / size)
        # Flags have no thresholds.
        if value.dtype.kind == "b":
            return 0
        reads = self._is_index(value) or any(
            value.read_at(operator, 1) for operator in ("Div", "Mod", "BitShift")
        )
        return max(ceil(len(value.interest.numbers) / size), int(reads or value.interest.ties))

    def _at(self, value: InputValue, rng: np.random.Generator, number: int) -> CornerValue | None:
        """Return an input's corners for the feed of a number."""
        start = number * value.base.size
        if value.dtype.kind == "O":
            return texts.words(value, rng, start)
        if value.dtype.kind in "iu":
            indices = (
                integers.as_indices(value, rng, repeated=self._reduces)
                # Numbers that the model compares with come before plain indices.
                if number == 0 and not value.interest.numbers
                else None
            )
            return indices or integers.at_numbers(value, rng, start, largest=self._largest)
        if value.dtype.kind != "f":
            return None
        if (box_corners := boxes.boxes(value, rng)) is not None:
            return box_corners
        if value.interest.columns:
            return floats.at_columns(value, rng)
        if value.is_restricted and not value.interest.numbers:
            return None
        size = max(1, value.base.size)
        turns = [
            (group, at) for group in floats.threshold_groups(value) for at in range(ceil(len(group) / size))
        ]
        if not turns:
            return None
        # Feeds take the groups in turn.
        group, at = turns[number % len(turns)]
        return floats.at_thresholds(value, group, rng, at * size)

    def _even(self, base: Mapping[str, Any]) -> Iterator[CornerFeed]:
        """Inputs all of whose elements are one number: means and sums of them are at a threshold then."""
        # All elements alike give sums and means that are exactly known.
        inputs = self._values(base)
        most = max((len(value.interest.even) for value in inputs.values()), default=0)
        for number in range(min(most, _MOST_FEEDS)):
            equal_values = {
                name: CornerValue(
                    np.full_like(value.base, value.interest.even[number]), np.ones_like(value.base, bool)
                )
                for name, value in inputs.items()
                if number < len(value.interest.even)
            }
            feed = self._feed(f"equal elements {number + 1}", base, equal_values)
            if feed is not None:
                yield CornerFeed(feed)

    @staticmethod
    def _mask(value: InputValue, kind: str, place: int) -> CornerValue | None:
        return masks.mask(value, kind, place) if value.is_mask and value.base.size else None

    def _masked(self) -> Iterator[CornerFeed]:
        for number, kind in enumerate(masks.MASKS):
            base = self._base("normal", 20 + number)
            if base is None:
                return
            # Only masks have these patterns.
            flags = {name: value for name, value in self._values(base).items() if value.is_mask}
            mask_values = {
                name: self._mask(value, kind, position)
                for position, (name, value) in enumerate(flags.items())
            }
            feed = self._feed(kind, base, mask_values)
            if feed is not None:
                yield CornerFeed(feed)

    def _of_magnitudes(self) -> Iterator[CornerFeed]:
        """Yield large, huge and small numbers, and NaN and infinities if every kernel treats them alike."""
        base = self._base("normal", 30)
        if base is None:
            return
        inputs, rng, flow = self._values(base), self._rng(30), self.flow
        # Restricted inputs must stay within their range.
        numbers = {
            name: value
            for name, value in inputs.items()
            if value.dtype.kind == "f" and not value.is_restricted and not value.is_mask and value.base.size
        }
        same = keeps_infinities(flow)
        ends: dict[str, CornerValue | None] = {}
        if computes_integers_alone(flow):
            whole = {
                n: v
                for n, v in inputs.items()
                if v.dtype.kind in "iu" and not v.is_restricted and not v.is_mask
            }
            ends = {name: integers.at_ends(value, rng) for name, value in whole.items() if value.base.size}

        def floats_by(make: Callable[[InputValue], CornerValue]) -> dict[str, CornerValue | None]:
            return {name: make(value) for name, value in numbers.items()}

        feed = self._feed("magnitudes", base, {**floats_by(lambda value: floats.large(value, rng)), **ends})
        if feed is not None:
            yield CornerFeed(feed, finite=not same)
        if not numbers:
            return
        if not casts_to_integers(flow):
            pair = [floats_by(lambda value, size=size: floats.huge(value, rng, size)) for size in _MAGNITUDES]  # type: ignore[misc]
            huge, less = (self._feed("huge elements", base, values) for values in pair)
            if huge is not None and less is not None:
                yield CornerFeed(huge, (less,), finite=True)
        # Small numbers show the epsilon of a normalisation.
        if normalises(flow):
            tiny = self._feed("small numbers", base, floats_by(lambda value: floats.small(value, rng)))
            if tiny is not None:
                yield CornerFeed(tiny, finite=True)
        # Other kernels treat NaN in different ways.
        if keeps_nan(flow):
            made_nan = floats_by(lambda value: floats.without_numbers(value, rng, infinities=same))
            feed = self._feed("NaN and infinities" if same else "NaN", base, made_nan)
            if feed is not None:
                yield CornerFeed(feed)
        # Infinities alone do not become NaN in these models.
        if bounds_infinities(flow) or (same and any(value.base.size < _FEW for value in numbers.values())):
            feed = self._feed("infinities", base, floats_by(lambda value: floats.infinite(value, rng)))
            if feed is not None:
                yield CornerFeed(feed)

    def _at_other_sizes(self) -> Iterator[CornerFeed]:
        for name, tried in other_sizes(self.source, self.flow):
            sources = [replace(self.source, sizes={**self.source.sizes, **sizes}) for sizes in tried if sizes]
            fitting = [source for source in sources if is_affordable(source)]
            feeds = [values for source in fitting if (values := source.feed("normal", draw=DRAW)) is not None]
            if feeds:
                first, *others = (Feed(name, values, corner=True) for values in feeds)
                yield CornerFeed(first, tuple(others))

    def _more(self) -> Iterator[CornerFeed]:
        """More random feeds, until a thousand numbers were run: in one feed if the batch is open."""
        count = sum(array.size for array in self._base_arrays())
        # Enough numbers were run already.
        if not count or 2 * count >= _NUMBERS:
            return
        missing = ceil(_NUMBERS / count) - 2
        sizes = open_dims(self.source.model, self.source.shapes)
        # One large batch is cheaper than many runs.
        batch = {key: sizes[key] * (missing + 2) for key in batch_keys(self.source.model) & sizes.keys()}
        if batch:
            wider = replace(self.source, sizes={**self.source.sizes, **batch})
            values = wider.feed("normal", draw=DRAW)
            if values is not None and wider.shapes != self.source.shapes:
                yield CornerFeed(Feed("a large batch", values))
                return
        for draw in range(min(missing, _MOST_MORE)):
            values = self.source.feed("wide" if draw % 2 else "normal", draw=DRAW + 100 + draw)
            if values is not None:
                yield CornerFeed(Feed(MORE, values))

    def _base_arrays(self) -> list[Array]:
        base = self._base("normal", 0) or {}
        return [array for array in base.values() if isinstance(array, np.ndarray)]
