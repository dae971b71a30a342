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
        """Return the symbols that the length of an axis may depend on; of a merged axis, those of its factors."""
        found: list[str] = []
        for factor in dim.flat_factors():
            symbol = self.symbol(factor)
            if symbol:
                found.append(symbol)
            elif factor.varies:
                of_batch, of_others = self.carries_batch(factor), factor.sizes[1] != factor.sizes[3]
                found.extend(name for name in self.sizes if (of_batch if name in self.batch else of_others))
        return list(dict.fromkeys(found))

    def text(self, dim: Dim) -> str:
        """Return the length of an axis as the report shows it: N, 12, N × 2, H / 8, or what it depends on."""
        return self.symbol(dim) or " × ".join(map(self._factor_text, dim.flat_factors()))

    def _factor_text(self, dim: Dim) -> str:
        symbol = self.symbol(dim)
        if symbol or not dim.varies:
            return symbol or str(dim.frozen)
        for name, sizes in self.sizes.items():
            formula = linear_formula(sizes, dim.sizes)
            if formula is not None:
                multiplier, divisor, offset = formula
                if multiplier != 1:
                    return f"{multiplier} × {name}"
                return (
                    f"{name} / {divisor}"
                    if divisor != 1
                    else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"
                )
        return f"{dim.frozen} (changes with {' and '.join(self.symbols_in(dim))})"
