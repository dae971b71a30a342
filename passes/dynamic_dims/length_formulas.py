"""The expression that gives the length of an output's axis, fitted to lengths that shape inference found at some sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from onnx_migrate.model.dims.expressions import value_of

__all__ = ["Lengths", "formula"]

_DIVISORS = (*range(2, 17), 20, 24, 28, 32, 40, 48, 64, 128, 160, 256, 320)
"""Strides of networks, and products of them."""

_LEAST_SAMPLES = 4
"""Sizes at which a length must be known; fewer fit too many expressions."""


@dataclass(frozen=True)
class Lengths:
    """The lengths that were found of one axis: with all symbols at `frozen`, with one at another size, and with all."""

    frozen: Mapping[str, int]
    length: int
    of_symbol: Mapping[str, Sequence[tuple[int, int]]]
    """For each symbol that the length changes with, sizes of it and the lengths, the others at their frozen size."""
    of_all: Sequence[tuple[Mapping[str, int], int]]


def formula(found: Lengths) -> str | None:
    """Return the one expression that gives all these lengths; None where none does, or several different ones do.

    Of one symbol: a whole multiple and a rest, or a quotient that is rounded. Of several: a sum or a product of multiples.
    """
    if not found.of_symbol or not all(name.isidentifier() for name in found.of_symbol):
        return None
    if any(len(runs) < _LEAST_SAMPLES for runs in found.of_symbol.values()):
        return None
    if len(found.of_symbol) > 1 and not found.of_all:
        return None
    texts = [text for text in _candidates(found) if _fits(text, found)]
    return texts[0] if len(texts) == 1 else None


def _candidates(found: Lengths) -> Iterator[str]:
    linear = {name: _linear(name, found) for name in found.of_symbol}
    factors = {name: fit[0] for name, fit in linear.items() if fit is not None}
    if len(factors) == len(linear) == 1:
        ((name, fit),) = linear.items()
        assert fit is not None
        yield _sum([_times(fit[0], name)], fit[1])
    elif len(linear) == 1:
        yield from _quotients(next(iter(linear)), found)
    elif len(factors) == len(linear):
        rest = found.length - sum(factor * found.frozen[name] for name, factor in factors.items())
        yield _sum([_times(factor, name) for name, factor in factors.items()], rest)
        whole, remainder = divmod(found.length, prod(found.frozen[name] for name in factors))
        if not remainder:
            yield _times(whole, "*".join(factors))


def _linear(name: str, found: Lengths) -> tuple[int, int] | None:
    """Return the factor and the rest that give the lengths of one symbol."""
    size, length = next(run for run in found.of_symbol[name] if run[0] != found.frozen[name])
    factor, remainder = divmod(length - found.length, size - found.frozen[name])
    rest = found.length - factor * found.frozen[name]
    exact = not remainder and all(factor * size + rest == length for size, length in found.of_symbol[name])
    return (factor, rest) if exact else None


def _quotients(name: str, found: Lengths) -> Iterator[str]:
    """Yield expressions with a rounded quotient of one symbol that give its lengths."""
    points = [(found.frozen[name], found.length), *found.of_symbol[name]]
    for divisor in _DIVISORS:
        for shift in range(divisor):
            quotients = [(size + shift) // divisor for size, _ in points]
            low, high = min(quotients), max(quotients)
            if low == high:
                continue
            lengths = dict(zip(quotients, (length for _, length in points), strict=True))
            factor, remainder = divmod(lengths[high] - lengths[low], high - low)
            rest = lengths[low] - factor * low
            if not remainder and all(
                factor * quotient + rest == length
                for quotient, (_, length) in zip(quotients, points, strict=True)
            ):
                base = f"({name} + {shift})" if shift else name
                quotient = f"{base}//{divisor}"
                yield _sum([quotient if factor == 1 else f"{factor}*({quotient})"], rest)


def _fits(text: str, found: Lengths) -> bool:
    one = [
        ({**found.frozen, name: size}, length)
        for name, runs in found.of_symbol.items()
        for size, length in runs
    ]
    runs = [(found.frozen, found.length), *one, *found.of_all]
    return all(value_of(text, sizes) == length for sizes, length in runs)


def _times(factor: int, name: str) -> str:
    return name if factor == 1 else f"{factor}*{name}"


def _sum(terms: Sequence[str], rest: int) -> str:
    text = " + ".join(terms)
    return text if not rest else f"{text} {'+' if rest > 0 else '-'} {abs(rest)}"
