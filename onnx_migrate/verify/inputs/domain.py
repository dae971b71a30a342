"""Random floats of one sign, of a small interval, or sorted: for models that make NaN of most other numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from onnx_migrate.verify.inputs.generate import RandomInputs
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["feeds_of_domains"]


def _sorted(values: Array) -> Array:
    return np.sort(np.abs(values), axis=-1) if values.ndim else np.abs(values)


_DOMAINS: Mapping[str, Callable[[Array], Array]] = {
    "positive": np.abs,
    "from 0 to 1": lambda values: np.exp(-np.abs(values)),
    "from -1 to 1": np.tanh,
    "above 1": lambda values: 1 + np.abs(values),
    "sorted": _sorted,
    "negative": lambda values: -np.abs(values),
}
"""Functions that turn normal numbers into numbers of a domain, by the domain's name."""


def feeds_of_domains(source: RandomInputs) -> Iterator[Feed]:
    """Yield a feed of each domain, in which all inputs of floats have numbers of that domain."""
    base = source.feed("normal")
    if base is None:
        return
    # Other numbers in an input that a node restricts would make the runtime refuse the feed.
    restricted = {
        name
        for name, accepted in source.ranges.items()
        if not (accepted.weak or accepted.discrete or accepted.domain)
    }
    for domain, make in _DOMAINS.items():
        values: dict[str, Any] = dict(base)
        for name, array in base.items():
            if name not in restricted and isinstance(array, np.ndarray) and array.dtype.kind == "f":
                values[name] = make(array).astype(array.dtype)
        yield Feed(domain, values)
