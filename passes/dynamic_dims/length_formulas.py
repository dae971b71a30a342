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
    """The lengths that were found of one axis: `length` with all symbols at `frozen`, and that at other sizes."""

    frozen: Mapping[str, int]
    length: int
    runs: Sequence[tuple[Mapping[str, int], int]]
    """With one symbol at another size, and with all."""

    def of(self, symbol: str) -> list[tuple[int, int]]:
        """Return the other sizes of a symbol and the lengths, where all other symbols are at their frozen size."""
        others = self.frozen.keys() - {symbol}
        alone = ((sizes, n) for sizes, n in self.runs if all(sizes[o] == self.frozen[o] for o in others))
        return [(sizes[symbol], length) for sizes, length in alone]

    @property
    def changes(self) -> list[str]:
        """The symbols that the length changes with."""
        return [name for name in self.frozen if any(length != self.length for _, length in self.of(name))]


def formula(found: Lengths) -> str | None:
    """Return the one expression that gives all these lengths; None if none does, or several different ones do.

    Of one symbol: a whole multiple and a rest, or a quotient that is rounded. Of several: a sum or a product of multiples.
    """
    of_symbol = {name: found.of(name) for name in found.changes}
    # A symbol such as "a-b" would read as an expression of other symbols.
    if not of_symbol or not all(name.isidentifier() for name in of_symbol):
        return None
    if any(len(runs) < _LEAST_SAMPLES for runs in of_symbol.values()):
        return None
    if len(of_symbol) > 1 and len(found.runs) == sum(len(found.of(name)) for name in found.frozen):
        return None  # at no sizes do all change
    texts = [
        text
        for text in _candidates(found, of_symbol)
        if all(value_of(text, sizes) == n for sizes, n in [(found.frozen, found.length), *found.runs])
    ]
    return texts[0] if len(texts) == 1 else None


def _candidates(found: Lengths, of_symbol: Mapping[str, list[tuple[int, int]]]) -> Iterator[str]:
    linear = {name: _linear(name, found, runs) for name, runs in of_symbol.items()}
    factors = {name: fit[0] for name, fit in linear.items() if fit is not None}
    if len(factors) == len(linear) == 1:
        ((name, fit),) = linear.items()
        assert fit is not None
        yield _sum([_times(fit[0], name)], fit[1])
    elif len(linear) == 1:
        ((name, runs),) = of_symbol.items()
        yield from _quotients(name, [(found.frozen[name], found.length), *runs])
    elif len(factors) == len(linear):
        rest = found.length - sum(factor * found.frozen[name] for name, factor in factors.items())
        yield _sum([_times(factor, name) for name, factor in factors.items()], rest)
        whole, remainder = divmod(found.length, prod(found.frozen[name] for name in factors))
        if not remainder:
            yield _times(whole, "*".join(factors))


def _linear(name: str, found: Lengths, runs: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the factor and the rest that give the lengths of one symbol."""
    size, length = runs[0]
    factor, remainder = divmod(length - found.length, size - found.frozen[name])
    rest = found.length - factor * found.frozen[name]
    exact = not remainder and all(factor * size + rest == length for size, length in runs)
    return (factor, rest) if exact else None


def _quotients(name: str, points: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yield expressions with a rounded quotient of one symbol that give these lengths of its sizes."""
    for divisor in _DIVISORS:
        for shift in range(divisor):
            quotients = [(size + shift) // divisor for size, _ in points]
            low, high = min(quotients), max(quotients)
            # Without two different quotients, no factor follows from the lengths.
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


def _times(factor: int, name: str) -> str:
    return name if factor == 1 else f"{factor}*{name}"


def _sum(terms: Sequence[str], rest: int) -> str:
    text = " + ".join(terms)
    return text if not rest else f"{text} {'+' if rest > 0 else '-'} {abs(rest)}"
