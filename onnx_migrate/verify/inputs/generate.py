"""Random inputs that fit a model: the declared types and shapes, and the values that its nodes accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.inputs.constraints.ranges import Range
from onnx_migrate.verify.inputs.constraints.value_ranges import (
    chosen_numbers,
    input_ranges,
    padded,
    padding_ids,
)
from onnx_migrate.verify.inputs.sizes import SizeChoice, input_shapes, tensor_in
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["WIDE", "RandomInputs"]

_LARGEST = 1 << 28
"""Most bytes of a generated input, at eight for each element."""

_LARGEST_SUM = 1 << 30
"""The same for all inputs together."""

_LARGEST_DECK = 1 << 20
"""Largest number of accepted integers for which a feed uses each integer once before it repeats any."""

WIDE = "wide"
"""The distribution of numbers ten times as large as usual: few models are made for them."""

_DISTRIBUTIONS = ("normal", WIDE, "uniform", "pixels", "small", "zeros")

_WORDS = ("", "a", "Straße", "zebra 7")


@dataclass(frozen=True, eq=False)
class RandomInputs:
    """The random inputs of a model at one choice of sizes.

    A dim that the model leaves open has the number that `other`, a model of the same inputs, declares for it, if any. `sizes` (by
    key: sizes.py) and `values` come from a runtime's error messages about dims and about values of inputs.
    """

    model: onnx.ModelProto
    other: onnx.ModelProto | None
    choice: SizeChoice
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Range] = field(default_factory=dict)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every input. Raises UsageError for a type without a generator."""
        return input_shapes(self.model, self.other, self.choice, self.sizes)

    @cached_property
    def _ranges(self) -> dict[str, Range]:
        return input_ranges(self.model, self.shapes)

    @property
    def ranges(self) -> dict[str, Range]:
        """The accepted values of each input, from nodes or from a runtime's error messages; others accept any."""
        return {**self._ranges, **self.values}

    @cached_property
    def _chosen(self) -> dict[str, int]:
        return chosen_numbers(self.model)

    @cached_property
    def _padding_ids(self) -> dict[str, int]:
        return padding_ids(self.model)

    def feed(self, distribution: str, *, padding: bool = False, draw: int = 0) -> dict[str, Any] | None:
        """Return a value for every input, None if they would be too large. Raises UsageError for a type without a generator.

        `distribution` is that of floats. "normal" is standard normal, "wide" is ten times that, with zeros, and "small" is a
        hundredth of it. "uniform" has numbers from 0 to 1, "pixels" from 0 to 255, and "zeros" only 0. "wide" leaves the domain
        of Log and Sqrt, so that NaN and infinity occur too. If the model looks for a single integer (`chosen_numbers`), all
        distributions except "wide" give it. With `padding`, rows of integers end with the number that the model looks for in them
        (`padding_ids`). Another `draw` gives other values.
        """
        seed = self.seed + draw
        # Each distribution has a generator of its own, so that its numbers do not depend on the runs before.
        rng = np.random.default_rng([seed, *distribution.encode()])
        shapes = self.shapes
        sizes = [prod(shape) * 8 for shape in shapes.values()]
        if max(sizes, default=0) > _LARGEST or sum(sizes) > _LARGEST_SUM:
            return None
        known_ranges = self._ranges.items()
        ranges = {name: span for name, span in known_ranges if not (span.domain and distribution == "wide")}
        ranges.update(self.values)
        feed: dict[str, Any] = {}
        for value in fed_inputs(self.model.graph):
            kind, copies = tensor_in(value)
            drawn = _Draw(rng, distribution, value.name, ranges.get(value.name), shapes[value.name])
            values = [drawn.values(kind.tensor_type.elem_type, seed) for _ in range(copies)]
            feed[value.name] = values if copies > 1 else values[0]
        # A runtime's message about an input is more certain than a number found in the model.
        for name, number in self._chosen.items() if distribution != "wide" else ():
            if name not in self.values:
                feed[name] = np.full_like(feed[name], number)
        for name, padding_id in self._padding_ids.items() if padding else ():
            accepted = ranges.get(name)
            if isinstance(feed[name], np.ndarray) and (
                accepted is None or accepted.weak or accepted.low <= padding_id <= accepted.high
            ):
                feed[name] = padded(feed[name], padding_id)
        return feed


@dataclass(frozen=True)
class _Draw:
    """Draws the values of one input, of a shape, among the values that the nodes accept."""

    rng: np.random.Generator
    distribution: str
    name: str
    accepted: Range | None
    shape: tuple[int, ...]

    def values(self, element: int, seed: int) -> Array:
        """Return values of an element type."""
        rng, accepted, shape = self.rng, self.accepted, self.shape
        if element == TensorProto.STRING:
            words = np.array((accepted.words if accepted else ()) or _WORDS, dtype=object)
            return np.asarray(words[rng.integers(0, len(words), shape)], dtype=object)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
        if element == TensorProto.BOOL:
            if accepted is not None and accepted.low == accepted.high:
                return np.full(shape, bool(accepted.low), dtype)
            filled_value = np.full(
                shape, (self.distribution != "wide") != seed % 2, dtype
            )  # to take both branches
            return filled_value if prod(shape) <= 1 else rng.random(shape) < 0.5
        if accepted is not None and accepted.pattern:
            return np.resize(np.array(accepted.pattern), shape).astype(dtype)
        if dtype.kind in "iu":
            return self._integers(dtype, seed).astype(dtype)
        if accepted is not None and not accepted.weak and not accepted.discrete:
            return rng.uniform(accepted.low, accepted.high, shape).astype(dtype)
        if accepted is not None and not accepted.discrete and "mask" in self.name.lower():
            return (rng.random(shape) < 0.8).astype(dtype)
        values = self._floats()
        if dtype.kind == "c":
            values = values + 1j * self._floats()
        return values.astype(dtype)

    def _floats(self) -> Array:
        if self.distribution in ("uniform", "pixels"):
            return np.asarray(self.rng.random(self.shape) * (255.0 if self.distribution == "pixels" else 1.0))
        spread = {"normal": 1.0, "wide": 10.0, "small": 0.01, "zeros": 0.0}[self.distribution]
        values = np.asarray(self.rng.standard_normal(self.shape) * spread)
        return np.where(self.rng.random(self.shape) < 0.05, 0.0, values) if spread > 1 else values

    def _integers(self, dtype: np.dtype[Any], seed: int) -> Array:
        rng, accepted, shape = self.rng, self.accepted, self.shape
        if (accepted is None or accepted.weak) and "mask" in self.name.lower():
            values = np.asarray(rng.random(shape) < 0.8, dtype)
            if values.ndim > 1:
                values[..., 0] = 1  # attention over a row that masks everything is NaN
            return values
        info = np.iinfo(dtype)
        if accepted is not None:
            low, high = max(int(accepted.low), int(info.min)), min(int(accepted.high), int(info.max))
            if low <= high and high - low < _LARGEST_DECK:
                return self._dealt(np.arange(low, high + 1), seed)
        if accepted is None or low > high:  # nodes that contradict each other accept nothing
            reach = 255 if dtype.itemsize == 1 else 100 if self.distribution == "wide" else 8
            low, high = max(int(info.min), -reach), min(int(info.max), reach)
        return rng.integers(low, high + 1, shape)

    def _dealt(self, accepted: Array, seed: int) -> Array:
        """Return accepted integers in random order; none repeats before each was used once.

        One distribution continues after the numbers of another, so that as many rows of a table as possible are read.
        """
        # The order must not depend on the distribution, because each one continues after another.
        deck = np.random.default_rng([seed, *self.name.encode()]).permutation(accepted)
        start, count = _DISTRIBUTIONS.index(self.distribution) * prod(self.shape), prod(self.shape)
        return self.rng.permutation(deck[(start + np.arange(count)) % deck.size]).reshape(self.shape)
