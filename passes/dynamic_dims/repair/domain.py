"""What is known of a value at the sizes a model had and at others: its dims, and what it holds if that is shape arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Array", "Assignments", "Dim", "Dims", "Sizes", "Value", "merged_axis"]

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
"""How long an axis is in each world; the first is the world of the frozen sizes."""

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


@dataclass(frozen=True)
class Dim:
    """One axis: its length in each world, and, if a Reshape put several axes into it, these in row-major order."""

    sizes: Sizes
    factors: tuple[Dim, ...] = field(default=(), compare=False)

    @property
    def frozen(self) -> int:
        """The length the axis had."""
        return self.sizes[0]

    @property
    def varies(self) -> bool:
        """Whether the length is another in some world."""
        return self.sizes.count(self.sizes[0]) < len(self.sizes)

    def flat_factors(self) -> list[Dim]:
        """Return what the axis is made of, in row-major order."""
        if not self.factors:
            return [self]
        return [flat for factor in self.factors for flat in factor.flat_factors()]


Dims = tuple[Dim | None, ...]


def merged_axis(factors: list[Dim], assignments: int) -> Dim:
    """Return the axis that these axes become when they are laid together."""
    if len(factors) == 1:
        return factors[0]
    sizes = tuple(prod(factor.sizes[assignment] for factor in factors) for assignment in range(assignments))
    kept = tuple(factor for factor in factors if factor.sizes != (1,) * assignments)
    return Dim(sizes, kept if len(kept) > 1 and any(factor.varies for factor in kept) else ())


@dataclass(frozen=True)
class Assignments:
    """The sizes of each symbol in each world: as frozen, twice with all of them other, and with the batch alone other.

    No two symbols that move have one size in a world that is not the frozen one.
    """

    sizes: Mapping[str, Sizes]
    batch: frozenset[str]

    @classmethod
    def of(cls, frozen: Mapping[str, int], batch: Set[str], step: int) -> Assignments:
        """Choose worlds in which a symbol that is no batch has grown by multiples of `step`."""
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
        """How many there are."""
        return 4

    def fixed(self, size: int) -> Dim:
        """Return an axis that is as long in all of them."""
        return Dim((size,) * self.count)

    def carries_batch(self, dim: Dim | None) -> bool:
        """Tell whether an axis is longer where only the batch is."""
        return dim is not None and dim.sizes[3] != dim.sizes[0]

    def symbol(self, dim: Dim) -> str:
        """Return the symbol an axis is, or "" if it is none."""
        return next((name for name, sizes in self.sizes.items() if sizes == dim.sizes), "")


@dataclass
class Value:
    """A value's type, its dims, and its elements in each world if they are few and known.

    `types` stands for what is no tensor, or of unknown rank: one TypeProto for each world.
    """

    dtype: int = 0
    dims: Dims | None = None
    data: tuple[Array, ...] | None = None
    types: tuple[onnx.TypeProto, ...] | None = None
    _tensors: dict[int, TensorProto] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> tuple[Dim, ...] | None:
        """The dims if each is known."""
        dims = [dim for dim in self.dims or () if dim is not None]
        return tuple(dims) if self.dims is not None and len(dims) == len(self.dims) else None

    @property
    def varies(self) -> bool:
        """Whether any axis does."""
        return self.dims is not None and any(dim is not None and dim.varies for dim in self.dims)

    def type_in(self, assignment: int) -> onnx.TypeProto:
        """Return the type in one world."""
        if self.types is not None:
            return self.types[assignment]
        sizes = (
            None
            if self.dims is None
            else [None if dim is None else dim.sizes[assignment] for dim in self.dims]
        )
        return helper.make_tensor_type_proto(self.dtype, sizes)

    def tensor_in(self, assignment: int) -> TensorProto | None:
        """Return the elements in one world as onnx's inference takes them."""
        if self.data is None:
            return None
        if assignment not in self._tensors:
            self._tensors[assignment] = numpy_helper.from_array(self.data[assignment])
        return self._tensors[assignment]

    def constant(self) -> Array | None:
        """Return the elements if they are the same in all worlds."""
        if self.data is None or any(not np.array_equal(self.data[0], other) for other in self.data[1:]):
            return None
        return self.data[0]
