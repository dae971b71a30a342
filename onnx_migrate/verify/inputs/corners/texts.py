"""Strings at the corners: the words that a model looks for, in capitals and not, and words that it does not know."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue, scattered

__all__ = ["words"]

_OTHERS = ("Xyz", "UPPER", "lower", "Two Words", "", "The", "the", "THE CAT", "1")
"""Words that no model is likely to look for, with and without capitals, and common stop words."""


def words(value: InputValue, rng: np.random.Generator, start: int) -> CornerValue | None:
    """Return words of the model, these in other cases, and others; None if strings must be numbers."""
    if any(value.read_at(operator, 0) for operator in ("Cast", "CastLike")):
        return None
    pool = _pool(value.interest.words)
    array = np.empty(len(pool), object)
    array[:] = pool
    return CornerValue(scattered(value.base, array, rng, start, 1.0).values)


def _pool(words: tuple[str, ...]) -> list[str]:
    """Return the given words, each beside another one, then the words in other cases."""
    pool: list[str] = []
    for number, word in enumerate(words):
        pool += [word, _OTHERS[number % len(_OTHERS)]]
    for word in words:
        pool += [cased for cased in (word.upper(), word.lower(), word.capitalize()) if cased not in pool]
    return [*pool, *(other for other in _OTHERS if other not in pool)]


def count(value: InputValue) -> int:
    """Return how many words there are."""
    return len(_pool(value.interest.words))
