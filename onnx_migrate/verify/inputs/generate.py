"""Random inputs that fit a model: the declared types and shapes, and the values that its nodes accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verify.compare.arrays import Array
from onnx_migrate.verify.inputs.constraints.marks import marks, padded
from onnx_migrate.verify.inputs.constraints.ranges import Range
from onnx_migrate.verify.inputs.constraints.value_ranges import input_ranges
from onnx_migrate.verify.inputs.input_shapes import input_shapes, tensor_in
from onnx_migrate.verify.inputs.sizes import SizeChoice

__all__ = ["Corrections", "generate_feed"]

_LARGEST = 1 << 28
"""Bytes, at eight for each element, above which no input is generated."""

_LARGEST_SUM = 1 << 30
"""The same for all inputs together."""

_LARGEST_DECK = 1 << 20
"""How many integers may be accepted for each to be dealt once."""

_DISTRIBUTIONS = ("normal", "wide", "uniform", "pixels", "small")

_WORDS = ("", "a", "Straße", "zebra 7")


@dataclass(frozen=True)
class Corrections:
    """What is known from a runtime's refusals: sizes of dims (by key, see sizes.py), and ranges of inputs' values."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Range] = field(default_factory=dict)


def generate_feed(
    model: onnx.ModelProto,
    other: onnx.ModelProto | None,
    choice: SizeChoice,
    distribution: str,
    seed: int,
    corrections: Corrections | None = None,
    *,
    marked: bool = False,
) -> dict[str, Any] | None:
    """Return a value for every input, None if they would be too large. Raises UsageError for a type without a generator.

    `distribution` is that of floats: "normal" (standard normal), "wide" (ten times that, with zeros), "uniform" (0 to
    1), "pixels" (0 to 255) or "small" (a hundredth of "normal"). A dim that `model` leaves open has the number that
    `other`, a model of the same inputs, declares for it, if any. With `marked`, rows of integers end with the one that
    the model looks for in them (constraints/marks.py).
    """
    corrections = corrections or Corrections()
    rng = np.random.default_rng([seed, *distribution.encode()])
    shapes = input_shapes(model, other, choice, corrections.sizes)
    sizes = [prod(shape) * 8 for shape in shapes.values()]
    if max(sizes, default=0) > _LARGEST or sum(sizes) > _LARGEST_SUM:
        return None
    ranges = {**input_ranges(model, shapes), **corrections.values}
    feed: dict[str, Any] = {}
    for value in fed_inputs(model.graph):
        kind, copies = tensor_in(value)
        element, shape = kind.tensor_type.elem_type, shapes[value.name]
        values = [
            _values(rng, element, shape, ranges.get(value.name), value.name, distribution, seed)
            for _ in range(copies)
        ]
        feed[value.name] = values if copies > 1 else values[0]
    for name, mark in marks(model).items() if marked else ():
        accepted = ranges.get(name)
        if isinstance(feed[name], np.ndarray) and (
            accepted is None or accepted.weak or accepted.low <= mark <= accepted.high
        ):
            feed[name] = padded(feed[name], mark)
    return feed


def _values(
    rng: np.random.Generator,
    element: int,
    shape: tuple[int, ...],
    accepted: Range | None,
    name: str,
    distribution: str,
    seed: int,
) -> Array:
    if element == TensorProto.STRING:
        words = np.array((accepted.words if accepted else ()) or _WORDS, dtype=object)
        return np.asarray(words[rng.integers(0, len(words), shape)], dtype=object)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    if element == TensorProto.BOOL:
        if accepted is not None and accepted.low == accepted.high:
            return np.full(shape, bool(accepted.low), dtype)
        return np.full(shape, distribution != "wide", dtype) if prod(shape) <= 1 else rng.random(shape) < 0.5
    if accepted is not None and accepted.pattern:
        return np.resize(np.array(accepted.pattern), shape).astype(dtype)
    if dtype.kind in "iu":
        return _integers(rng, dtype, shape, accepted, name, distribution, seed)
    if accepted is not None and not accepted.weak and not accepted.discrete:
        return rng.uniform(accepted.low, accepted.high, shape).astype(dtype)
    if accepted is not None and not accepted.discrete and "mask" in name.lower():
        return (rng.random(shape) < 0.8).astype(dtype)
    values = _floats(rng, shape, distribution)
    if dtype.kind == "c":
        values = values + 1j * _floats(rng, shape, distribution)
    return np.asarray(values).astype(dtype)


def _floats(rng: np.random.Generator, shape: tuple[int, ...], distribution: str) -> Array:
    if distribution in ("uniform", "pixels"):
        return rng.random(shape) * (255.0 if distribution == "pixels" else 1.0)
    values = rng.standard_normal(shape) * {"normal": 1.0, "wide": 10.0, "small": 0.01}[distribution]
    return np.where(rng.random(shape) < 0.05, 0.0, values) if distribution == "wide" else values


def _integers(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    accepted: Range | None,
    name: str,
    distribution: str,
    seed: int,
) -> Array:
    if (accepted is None or accepted.weak) and "mask" in name.lower():
        values = (rng.random(shape) < 0.8).astype(dtype)
        if values.ndim > 1:
            values[..., 0] = 1  # attention over a row that masks everything is NaN
        return values
    info = np.iinfo(dtype)
    if accepted is not None:
        low, high = max(int(accepted.low), int(info.min)), min(int(accepted.high), int(info.max))
    if accepted is None or low > high:  # nodes that contradict each other accept nothing
        accepted = None
        reach = 255 if dtype.itemsize == 1 else 100 if distribution == "wide" else 8
        low, high = max(int(info.min), -reach), min(int(info.max), reach)
    if accepted is not None and high - low < _LARGEST_DECK:
        return _dealt(rng, [seed, *name.encode()], distribution, low, high + 1, shape).astype(dtype)
    return rng.integers(low, high + 1, shape).astype(dtype)


def _dealt(
    rng: np.random.Generator, seeds: list[int], distribution: str, low: int, end: int, shape: tuple[int, ...]
) -> Array:
    """Return integers from `low` to before `end`, none again before each was there once, in random order.

    One distribution goes on where another ended: so as many rows of a table as can be are read.
    """
    deck = np.random.default_rng(seeds).permutation(np.arange(low, end))
    start = _DISTRIBUTIONS.index(distribution) * prod(shape)
    return rng.permutation(deck[(start + np.arange(prod(shape))) % deck.size]).reshape(shape)
