"""Answers on nodes that may hang on open dims: yes, no, or None, which is not known."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["all_of", "any_of", "reaches"]


def reaches(dims: Iterable[int | None], least: int) -> bool | None:
    """Return whether dims have a product of `least` or more; None if those that are open decide."""
    product, is_open = 1, False
    for dim in dims:
        product, is_open = product * (1 if dim is None else dim), is_open or dim is None
    return True if product >= least else None if is_open and product else False


def all_of(*answers: bool | None) -> bool | None:
    """Return whether all answers are yes; None, which is not known, if that decides."""
    return False if False in answers else None if None in answers else True


def any_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether an answer is yes, and stop at the first yes; None if an unknown answer decides."""
    is_open = False
    for answer in answers:
        if answer:
            return True
        is_open = is_open or answer is None
    return None if is_open else False
