"""Axes and the sample assignments under which their lengths are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod

__all__ = ["Assignments", "Dim", "Dims", "Sizes", "linear_formula", "merged_axis"]

Sizes = tuple[int, ...]
"""The length of an axis under each assignment; the first is the length in the source model."""

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


@dataclass(frozen=True)
class Dim:
    """One axis: its length under each assignment and, of a merged axis, the factors in row-major order.

    A merged axis is what a Reshape makes of several axes. Two dims are equal if their sizes are.
    """

    sizes: Sizes
    factors: tuple[Dim, ...] = field(default=(), compare=False)

    @property
    def frozen(self) -> int:
        """The length in the source model."""
        return self.sizes[0]

    @property
    def varies(self) -> bool:
        """Whether any assignment has another length than the source model."""
        return self.sizes.count(self.sizes[0]) < len(self.sizes)

    def flat_factors(self) -> list[Dim]:
        """Return the factors, those of merged factors in their place; an axis that is not merged is its own."""
        if not self.factors:
            return [self]
        return [flat for factor in self.factors for flat in factor.flat_factors()]


Dims = tuple[Dim | None, ...]
"""The axes of a tensor; None for one of unknown length."""


def merged_axis(factors: Sequence[Dim], assignments: int) -> Dim:
    """Return the axis that a Reshape makes of neighbouring axes, under a number of assignments."""
    if len(factors) == 1:
        return factors[0]
    sizes = tuple(prod(factor.sizes[assignment] for factor in factors) for assignment in range(assignments))
    kept = tuple(factor for factor in factors if factor.sizes != (1,) * assignments)
    return Dim(sizes, kept if len(kept) > 1 and any(factor.varies for factor in kept) else ())


def linear_formula(have: Sizes, want: Sizes) -> tuple[int, int, int] | None:
    """Return the multiplier, divisor and offset that make `want` of `have` under every assignment, None if none do."""
    if all(w % h == 0 and w // h == want[0] // have[0] for h, w in zip(have, want, strict=True)):
        return want[0] // have[0], 1, 0
    if all(w and h % w == 0 and h // w == have[0] // want[0] for h, w in zip(have, want, strict=True)):
        return 1, have[0] // want[0], 0
    offset = want[0] - have[0]
    if offset and all(w - h == offset for h, w in zip(have, want, strict=True)):
        return 1, 1, offset
    return None


@dataclass(frozen=True)
class Assignments:
    """The size of each symbol under each of four assignments: `sizes` maps a symbol to its four sizes.

    Assignment 0 has the sizes of the source model, 1 and 2 other sizes for all symbols, 3 other sizes for the
    symbols in `batch` alone. No two symbols have the same size under assignment 1, nor under 2.
    """

    sizes: Mapping[str, Sizes]
    batch: frozenset[str]

    @classmethod
    def of(cls, frozen: Mapping[str, int], batch: Set[str], step: int) -> Assignments:
        """Choose sizes: primes for a batch, the frozen size and multiples of `step` more for any other symbol."""
        sizes: dict[str, Sizes] = {}
        taken = set(frozen.values())
        primes = [prime for prime in _PRIMES if prime not in taken]
        others = 0
        for symbol, size in frozen.items():
            if symbol in batch:
                first, second, third = primes[:3]
                primes = primes[2:] if len(primes) > 4 else primes
                sizes[symbol] = (size, first, second, third)
            else:
                sizes[symbol] = (size, size + step * (1 + others), size + step * (4 + 3 * others), size)
                others += 1
        return cls(sizes, frozenset(batch))

    @property
    def count(self) -> int:
        """The number of assignments."""
        return 4

    def fixed(self, size: int) -> Dim:
        """Return an axis that has one length under all assignments."""
        return Dim((size,) * self.count)

    def carries_batch(self, dim: Dim | None) -> bool:
        """Return whether the length of an axis depends on a batch symbol."""
        return dim is not None and dim.sizes[3] != dim.sizes[0]

    def symbol(self, dim: Dim) -> str:
        """Return the symbol that has the axis's length under every assignment, "" if none has."""
        return next((name for name, sizes in self.sizes.items() if sizes == dim.sizes), "")

    def symbols_in(self, dim: Dim) -> list[str]:
        """Return the symbols that the length of an axis changes with; of a merged axis, those of its factors.

        Of a length that is no linear function of one symbol, they are all that it may change with: all symbols but the
        batch, and the batch too if the length differs where only the batch does.
        """
        found: list[str] = []
        for factor in dim.flat_factors():
            symbol, _ = self._formula(factor)
            if symbol:
                found.append(symbol)
            elif factor.varies:
                of_batch = self.carries_batch(factor)
                found.extend(name for name in self.sizes if of_batch or name not in self.batch)
        return list(dict.fromkeys(found))

    def text(self, dim: Dim) -> str:
        """Return the length of an axis as the report shows it: N, 12, N × 2, T + 1, or ≈H/8, which is rounded."""
        symbol = self.symbol(dim)
        if symbol:
            return symbol
        factors = dim.flat_factors()
        texts = [self._factor_text(factor) for factor in factors]
        return (
            texts[0]
            if len(texts) == 1
            else " × ".join(f"({text})" if " " in text else text for text in texts)
        )

    def _factor_text(self, dim: Dim) -> str:
        if not dim.varies:
            return str(dim.frozen)
        symbol, formula = self._formula(dim)
        if not symbol:
            return f"{dim.frozen}, which changes with {' and '.join(self.symbols_in(dim))}"
        multiplier, divisor, offset = formula
        if multiplier != 1:
            return f"{multiplier} × {symbol}"
        if divisor != 1:
            return f"≈{symbol}/{divisor}"
        return f"{symbol} {'+' if offset > 0 else '-'} {abs(offset)}" if offset else symbol

    def _formula(self, dim: Dim) -> tuple[str, tuple[int, int, int]]:
        """Return a symbol, and the multiplier, divisor and offset that make the length of an axis of it, else ""."""
        for name, sizes in self.sizes.items():
            formula = linear_formula(sizes, dim.sizes) if dim.varies else None
            if formula is not None:
                return name, formula
        return "", (1, 1, 0)
