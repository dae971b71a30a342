"""Simpler numbers in weights and inputs, and random weights in place of the user's."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from onnx_migrate.model.graphs import bodies, stored_weights
from onnx_migrate.reduction.bench import Bench, Edit, edited
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.parts import constant_tensor

__all__ = ["simpler_numbers", "strip_weights"]

Array = np.ndarray[Any, Any]

Change = Callable[[str, Array], Array]
"""Returns other numbers for the value of a name."""

_DIGITS = 2
"""Significant digits of rounded numbers."""

_TABLE = 64
"""Elements up to which 8-bit integers are a table or zero points, and no weight."""


def simpler_numbers(candidate: Candidate) -> Iterator[Edit]:
    """Yield edits that give weights and inputs simpler floats: ones, zeros, or numbers of two digits; all, then one each."""
    names = [name for name, array in _floats(candidate) if not _is_simple(array)]
    for group in [names, *([name] for name in names if len(names) > 1)]:
        for change in (_ones, _zeros, _rounded):
            yield partial(_simplified, names=group, change=change)


def _simplified(candidate: Candidate, names: Sequence[str], change: Change) -> Candidate | None:
    """Return the model with simpler numbers in these weights and inputs; None if they are simple."""
    arrays = ((name, array) for name, array in _floats(candidate) if name in names and not _is_simple(array))
    changeable = [
        name for name, array in arrays if not np.array_equal(change(name, array), array, equal_nan=True)
    ]
    return _changed(candidate, changeable, change) if changeable else None


def _ones(_name: str, array: Array) -> Array:
    return np.ones_like(array)


def _zeros(_name: str, array: Array) -> Array:
    return np.zeros_like(array)


def _floats(candidate: Candidate) -> Iterator[tuple[str, Array]]:
    """Yield the floats of weights and inputs."""
    for tensor in candidate.proto.graph.initializer:
        if tensor.data_type in (1, 10, 11):
            yield tensor.name, candidate.model.weights.array(tensor)
    for name, value in candidate.complete_feed().items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            yield name, value


def _is_simple(array: Array) -> bool:
    return not array.size or bool((array == 1).all() or (array == 0).all())


def _rounded(_name: str, array: Array) -> Array:
    """Return the numbers with two significant digits."""
    with np.errstate(all="ignore"):
        exponents = np.floor(np.log10(np.abs(array.astype(np.float64))))
        unit = 10.0 ** (exponents - (_DIGITS - 1))
        rounded = np.round(array / unit) * unit
    # The logarithm of 0 is infinite, so a 0 has no digits to round.
    usable = np.isfinite(rounded) & (array != 0)
    return np.where(usable, rounded, array).astype(array.dtype)


def _changed(candidate: Candidate, names: Iterable[str], change: Change) -> Candidate:
    """Return the model with changed numbers in these weights and inputs; `change` gets the name and the numbers."""
    changed, wanted = edited(candidate), {*names}
    feed = {
        name: change(name, np.asarray(value)) if name in wanted else value
        for name, value in candidate.feed.items()
    }
    for tensor in changed.proto.graph.initializer:
        if tensor.name in wanted:
            new = constant_tensor(
                tensor.name, change(tensor.name, candidate.model.weights.array(tensor)), changed.model.weights
            )
            new.data_type = tensor.data_type
            tensor.CopyFrom(new)
    return candidate.with_model(changed.model, feed)


def strip_weights(candidate: Candidate, bench: Bench) -> tuple[Candidate, tuple[str, ...]]:
    """Replace weights and recorded inputs by random numbers where the failure stays; return the names of those that stay.

    The random numbers have the mean, standard deviation, minimum and maximum of the replaced ones. Integer tables and shapes,
    single numbers, and weights inside bodies and functions stay. Raises TimeOver.
    """
    names = [name for name, array in _weights(candidate)]
    kept_weights = list(_weights_of_bodies(candidate))
    accepted = bench.first([_changed(candidate, names, _random)]) if names else candidate
    if accepted is not None:
        return accepted, tuple(kept_weights)
    for name in names:
        accepted = bench.first([_changed(candidate, [name], _random)])
        candidate = accepted or candidate
        kept_weights += [] if accepted is not None else [name]
    return candidate, tuple(kept_weights)


def _weights(candidate: Candidate) -> Iterator[tuple[str, Array]]:
    """Yield the weights and inputs that carry data of the model's owner."""
    yield from ((name, array) for name, array in _floats(candidate) if array.size > 1)
    for tensor in candidate.proto.graph.initializer:
        if tensor.data_type in (2, 3) and np.prod(tensor.dims) > _TABLE:
            yield tensor.name, candidate.model.weights.array(tensor)


def _weights_of_bodies(candidate: Candidate) -> Iterator[str]:
    """Yield the names of weights in sub-graphs and functions, and of Constants of the main graph."""
    main, *others = bodies(candidate.proto)
    inner = chain.from_iterable(stored_weights(others))
    constants = (node for node in main.body.node if node.op_type == "Constant")
    values = (attribute.t for node in constants for attribute in node.attribute if attribute.name == "value")
    for tensor in chain(inner, values):
        if tensor.data_type in (1, 10, 11) and np.prod(tensor.dims) > 1:
            yield tensor.name or "a constant without a name"


def _random(name: str, array: Array) -> Array:
    """Return random numbers of the same shape and type, and of the mean, deviation and range of the finite elements."""
    numbers = array.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return array
    # Python's own hash of a text differs from process to process.
    seed = zlib.crc32(f"{name} {array.shape} {array.dtype}".encode())
    drawn = np.random.default_rng(seed).normal(finite.mean(), finite.std(), array.shape)
    drawn = np.clip(drawn, finite.min(), finite.max())
    if array.dtype.kind in "iu":
        drawn = np.round(drawn)
    return np.where(np.isfinite(numbers), drawn, numbers).astype(array.dtype)
