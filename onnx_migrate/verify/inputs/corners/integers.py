"""Integers at the corners: -1 and the last row of a table, repeated indices, ends of the type, negative divisors."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from onnx_migrate.verify.inputs.corners.flow import Meeting
from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue, scattered
from onnx_migrate.verify.kernel.arrays import Array

__all__ = [
    "LARGEST_COUNT",
    "LARGEST_SIZE",
    "as_indices",
    "at_ends",
    "at_numbers",
    "gives_sizes",
    "is_index",
    "reduction",
    "with_minus_one",
]

_INDICES = (
    ("Gather", 1),
    ("GatherElements", 1),
    ("GatherND", 1),
    ("ScatterElements", 1),
    ("ScatterND", 1),
    ("Scatter", 1),
    ("OneHot", 0),
    ("SequenceAt", 1),
    ("ArrayFeatureExtractor", 1),
)
"""Operators and the positions of their inputs that choose rows.

A negative index counts from the end. If an operator does not support that, it refuses to run, and the feed is skipped.
"""

_SIZES = (("ConstantOfShape", 0), ("Expand", 1), ("Tile", 1), ("Range", 1), ("Range", 2))
"""Operators and the positions of their inputs that say how large the output becomes."""

_TIES = (1, 1, 0, 0, 1)
"""Few distinct numbers, so that many elements are equal."""

_SCATTERING = frozenset({"ScatterElements", "ScatterND", "Scatter"})

LARGEST_SIZE = 256
"""The largest integer for an input of a model whose sizes depend on values."""

LARGEST_COUNT = 4096
"""The largest of any model that does more with integers than arithmetic: it may be a number of turns."""

_ENDS = (31, 24, 53, 8, 7, 15, 16)
"""Powers of two at the ends of narrower types. Above three of them, floats skip whole numbers."""


def is_index(value: InputValue) -> bool:
    """Whether an input of integers chooses rows of a table or elements of another value."""
    return _reader(value) is not None


def _reader(value: InputValue) -> Meeting | None:
    return next(filter(None, (value.read_at(*reader) for reader in _INDICES)), None)


def gives_sizes(value: InputValue) -> bool:
    """Whether an input of integers decides the size of a value."""
    return value.dtype.kind == "i" and any(value.read_at(*reader) for reader in _SIZES)


def as_indices(value: InputValue, rng: np.random.Generator, *, repeated: bool) -> CornerValue | None:
    """Return indices with some -1, some of the last row and some repeated; None if the standard leaves the outcome open.

    Repeated indices of a Scatter without a reduction write to one place in any order. So indices repeat only with `repeated`, for
    which the result reduces.
    """
    reader, accepted = _reader(value), value.accepted
    # Only indices with a certain range may become -1.
    if reader is None or accepted is None or accepted.weak or value.dtype.kind != "i" or not value.base.size:
        return None
    # A single index can be at one limit only.
    if value.base.size == 1:
        return CornerValue(np.full_like(value.base, -1))
    node = reader.argument.node
    last = int(accepted.high)
    # Repeated indices write in any order.
    if not repeated and reduction(node) == b"none":
        if node.op_type == "ScatterND":
            return None
        return CornerValue(np.where(value.base == last, -1, value.base).astype(value.dtype))
    first = int(value.base.flat[0])
    # A repeated index shows whether a reduction adds both.
    pool = np.array((-1, first, last, first), value.dtype)
    return CornerValue(scattered(value.base, pool, rng, 0, 0.6 if value.base.size > 3 else 1.0).values)


def with_minus_one(value: InputValue, read: Array) -> CornerValue | None:
    """Return indices with one -1, in place of the last row or of one that is in `read`, the indices of another feed.

    So no row is lost that this feed alone reads.
    """
    accepted = value.accepted
    if accepted is None or accepted.weak or value.dtype.kind != "i" or not value.base.size:
        return None
    values = value.base.copy().reshape(-1)
    last = np.flatnonzero(values == int(accepted.high))
    replaceable = last if last.size else np.flatnonzero(np.isin(values, read))
    if not replaceable.size:
        return None
    values[replaceable[0]] = -1
    return CornerValue(values.reshape(value.base.shape))


def reduction(node: NodeProto) -> bytes:
    """Return the reduction of a Scatter for elements written to one place, "" for any other node."""
    if node.op_type not in _SCATTERING:
        return b""
    return next((attribute.s for attribute in node.attribute if attribute.name == "reduction"), b"none")


def at_numbers(
    value: InputValue, rng: np.random.Generator, start: int, *, largest: int | None
) -> CornerValue | None:
    """Return values that are mostly those which the model compares this input with, and their neighbours; None if there are none.

    `largest` is the greatest magnitude of these, None for any. Divisors become negative in every second element.
    """
    ties = _TIES if value.interest.ties and not value.is_restricted else ()
    pool: Array = np.array([*value.interest.numbers, *ties], value.dtype)
    # Larger numbers would overflow in the model.
    if largest is not None:
        pool = pool[np.abs(pool.astype(np.float64)) <= largest]
    divides = any(value.read_at(operator, 1) for operator in ("Div", "Mod"))
    if divides:
        # A division by zero is undefined.
        pool = pool[pool != 0]
        values = value.base.copy().reshape(-1)
        values[::2] = -values[::2] if value.dtype.kind == "i" else values[::2]
        return CornerValue(values.reshape(value.base.shape)) if value.dtype.kind == "i" else None
    if value.read_at("BitShift", 1):
        # Larger shifts are undefined.
        pool = np.array((0, 1, 8 * value.dtype.itemsize - 1), value.dtype)
    if not pool.size or not value.base.size:
        return None
    return CornerValue(scattered(value.base, pool, rng, start, 1.0 if value.base.size < 64 else 0.8).values)


def at_ends(value: InputValue, rng: np.random.Generator) -> CornerValue:
    """Return integers near the ends of the type and of narrower ones; never the least, whose negative does not exist."""
    ends = np.iinfo(value.dtype)
    numbers = [ends.max, ends.max - 1, ends.min + (ends.min < 0), 0]
    for power in _ENDS:
        numbers += [2**power, 2**power - 1, 2**power + 1, -(2**power) - 1]
    pool = np.array([number for number in numbers if ends.min < number <= ends.max], value.dtype)
    return CornerValue(
        scattered(value.base, rng.permutation(pool), rng, 0, 0.8 if value.base.size > 3 else 1.0).values
    )
