"""Abstract values: the type, axes and, for shape arithmetic, the elements of a tensor under each sample assignment.

An assignment gives each symbol of the inputs a size. The last functions return the values of what no node computes: graph
inputs, initializers and the outputs of Constant nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shape_arithmetic import LARGEST, Array
from onnx_migrate.model.weights import Weights

__all__ = [
    "SAMPLES",
    "Array",
    "Assignments",
    "Dim",
    "Dims",
    "SampledValue",
    "Sizes",
    "dtype_of",
    "fixed",
    "join",
    "joined_axis",
    "known_value",
    "linear_formula",
    "merged_axis",
    "value_of_body_input",
    "value_of_constant",
    "value_of_input",
    "value_of_sparse",
    "value_of_tensor",
]

Sizes = tuple[int, ...]
"""The length of an axis under each assignment; the first is the length in the source model."""

SAMPLES = 4
"""The number of assignments."""

_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)


@dataclass(frozen=True)
class Dim:
    """One axis: its length under each assignment, and the axes that it was made of.

    A Reshape merges several axes into one: these are its `factors`, in row-major order. A Concat joins axes end to end:
    these are its `terms`. Two dims are equal if their sizes are.
    """

    sizes: Sizes
    factors: tuple[Dim, ...] = field(default=(), compare=False)
    terms: tuple[Dim, ...] = field(default=(), compare=False)

    @property
    def frozen(self) -> int:
        """Return the length in the source model."""
        return self.sizes[0]

    @property
    def varies(self) -> bool:
        """Whether any assignment has another length than the source model."""
        return self.sizes.count(self.sizes[0]) < len(self.sizes)

    @property
    def of_batch(self) -> bool:
        """Whether the length depends on a batch symbol."""
        # Only batch symbols have another size under assignment 3.
        return self.sizes[3] != self.sizes[0]

    def flat_factors(self) -> list[Dim]:
        """Return the factors, with merged factors replaced by theirs. For an axis that is not merged, return the axis alone."""
        if not self.factors:
            return [self]
        return [flat for factor in self.factors for flat in factor.flat_factors()]

    def flat_terms(self) -> list[Dim]:
        """Return the axes that a Concat joined; for an axis that no Concat made, return the axis alone.

        A joined axis that was merged with others, as anchors of each cell, is joined of axes that are merged so.
        """
        if self.terms:
            return [flat for term in self.terms for flat in term.flat_terms()]
        joined = [at for at, factor in enumerate(self.factors) if len(factor.flat_terms()) > 1]
        if len(joined) != 1 or any(factor.varies for factor in self.factors[: joined[0]]):
            return [self]
        (at,) = joined
        before, after = self.factors[:at], self.factors[at + 1 :]
        parts = [merged_axis([term, *after]) for term in self.factors[at].flat_terms()]
        return parts * prod(factor.frozen for factor in before)


Dims = tuple[Dim | None, ...]
"""The axes of a tensor; None for one of unknown length."""


def fixed(size: int) -> Dim:
    """Return an axis that has one length under all assignments."""
    return Dim((size,) * SAMPLES)


def merged_axis(factors: Sequence[Dim]) -> Dim:
    """Return the axis that a Reshape creates from neighbouring axes."""
    if len(factors) == 1:
        return factors[0]
    sizes = tuple(map(prod, zip(*(factor.sizes for factor in factors), strict=True)))
    varying_factors = tuple(factor for factor in factors if factor != fixed(1))
    return Dim(
        sizes,
        varying_factors
        if len(varying_factors) > 1 and any(factor.varies for factor in varying_factors)
        else (),
    )


def joined_axis(terms: Sequence[Dim]) -> Dim:
    """Return the axis that a Concat creates of these axes."""
    sizes = tuple(map(sum, zip(*(term.sizes for term in terms), strict=True)))
    return Dim(sizes, terms=tuple(terms)) if len(terms) > 1 else terms[0]


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

    Assignment 0 has the sizes of the source model. Assignments 1 and 2 have other sizes for all symbols. Assignment 3 has
    other sizes only for the symbols in `batch`. No two symbols have the same size under assignment 1, nor under 2.
    """

    sizes: Mapping[str, Sizes]
    batch: frozenset[str]

    @classmethod
    def of(cls, frozen: Mapping[str, int], batch: Set[str], step: int) -> Assignments:
        """Choose sizes: primes for a batch, the frozen size and multiples of `step` more for any other symbol."""
        sizes: dict[str, Sizes] = {}
        used_sizes = set(frozen.values())
        primes = [prime for prime in _PRIMES if prime not in used_sizes]
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

    def symbol(self, dim: Dim) -> str:
        """Return the symbol that has the axis's length under every assignment, "" if none has."""
        return next((name for name, sizes in self.sizes.items() if sizes == dim.sizes), "")

    def symbols_in(self, dim: Dim) -> list[str]:
        """Return the symbols that the length of an axis changes with; for a merged axis, those of its factors.

        A length that is no linear function of one symbol may change with every symbol outside the batch. It may also change
        with the batch if it differs under the assignment in which only the batch differs. Then all these symbols are returned.
        """
        symbols: list[str] = []
        for factor in dim.flat_factors():
            symbol, _ = self._formula(factor)
            if symbol:
                symbols.append(symbol)
            elif factor.varies:
                symbols.extend(name for name in self.sizes if factor.of_batch or name not in self.batch)
        return list(dict.fromkeys(symbols))

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


@dataclass
class SampledValue:
    """The knowledge about a value; `SampledValue()` is a value without any knowledge, the top of the lattice.

    `dtype` is a TensorProto.DataType (0 if unknown). `dims` has the axes (None if even the rank is unknown). `data` has the
    elements under each assignment if they are few and known. `types` holds one TypeProto for each assignment of a value
    that is no tensor.
    """

    dtype: int = 0
    dims: Dims | None = None
    data: tuple[Array, ...] | None = None
    types: tuple[onnx.TypeProto, ...] | None = None
    _tensors: dict[int, TensorProto] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> tuple[Dim, ...] | None:
        """The dims if the length of every axis is known, else None."""
        dims = [dim for dim in self.dims or () if dim is not None]
        return tuple(dims) if self.dims is not None and len(dims) == len(self.dims) else None

    @property
    def varies(self) -> bool:
        """Whether the length of any axis is known to vary with the assignment."""
        return self.dims is not None and any(dim is not None and dim.varies for dim in self.dims)

    def with_axis(self, axis: int, dim: Dim) -> SampledValue:
        """Return a value of this type and these dims, which must be known, but for one axis; its elements are not known."""
        dims = [*(self.dims or ())]
        dims[axis] = dim
        return SampledValue(self.dtype, tuple(dims))

    def type_in(self, assignment: int) -> onnx.TypeProto:
        """Return the type, with the dims as numbers, under one assignment."""
        if self.types is not None:
            return self.types[assignment]
        sizes = (
            None
            if self.dims is None
            else [None if dim is None else dim.sizes[assignment] for dim in self.dims]
        )
        return helper.make_tensor_type_proto(self.dtype, sizes)

    def tensor_in(self, assignment: int) -> TensorProto | None:
        """Return the elements under one assignment as a TensorProto, None if they are not known."""
        if self.data is None:
            return None
        if assignment not in self._tensors:
            self._tensors[assignment] = numpy_helper.from_array(self.data[assignment])
        return self._tensors[assignment]

    def constant(self) -> Array | None:
        """Return the elements if they are known and equal under all assignments, else None."""
        if self.data is None or any(not np.array_equal(self.data[0], other) for other in self.data[1:]):
            return None
        return self.data[0]


def dtype_of(array: Array) -> int:
    """Return the TensorProto.DataType of an array's elements."""
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def known_value(array: Array) -> SampledValue:
    """Return the value of a constant whose elements are known."""
    return SampledValue(dtype_of(array), tuple(map(fixed, array.shape)), (array,) * SAMPLES)


def join(a: SampledValue, b: SampledValue) -> SampledValue:
    """Return the least upper bound: the knowledge about a value that is either `a` or `b`, for example after an If."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return SampledValue(a.dtype or b.dtype)
    return SampledValue(a.dtype, tuple(x if x == y else None for x, y in zip(a.dims, b.dims, strict=True)))


def value_of_input(declared: onnx.ValueInfoProto, assignments: Assignments) -> SampledValue:
    """Return the value of an input of the main graph, whose symbolic dims have the sizes assigned to the symbols.

    A dim with a symbol that has no sizes is unknown.
    """
    kind = declared.type
    if kind.WhichOneof("value") != "tensor_type":
        return SampledValue(types=(kind,) * SAMPLES)
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return SampledValue(tensor.elem_type)
    dims: list[Dim | None] = []
    for dim in tensor.shape.dim:
        if dim.dim_param in assignments.sizes:
            dims.append(Dim(assignments.sizes[dim.dim_param]))
        else:
            dims.append(fixed(dim.dim_value) if dim.HasField("dim_value") else None)
    return SampledValue(tensor.elem_type, tuple(dims))


def value_of_body_input(declared: onnx.ValueInfoProto) -> SampledValue:
    """Return the value of an input of a sub-graph, whose declared dims are not trusted: they hold frozen sizes."""
    tensor = declared.type.tensor_type
    return (
        SampledValue(tensor.elem_type)
        if declared.type.WhichOneof("value") == "tensor_type"
        else SampledValue()
    )


def value_of_tensor(tensor: onnx.TensorProto, weights: Weights) -> SampledValue:
    """Return the value of an initializer; the elements are read if there are at most LARGEST of them."""
    dims = tuple(map(fixed, tensor.dims))
    if prod(tensor.dims) > LARGEST or tensor.data_type == onnx.TensorProto.STRING:
        return SampledValue(tensor.data_type, dims)
    return SampledValue(tensor.data_type, dims, (weights.array(tensor),) * SAMPLES)


def value_of_sparse(tensor: onnx.SparseTensorProto) -> SampledValue:
    """Return the value of a sparse initializer, without its elements."""
    return SampledValue(tensor.values.data_type, tuple(map(fixed, tensor.dims)))


def value_of_constant(node: onnx.NodeProto, scope: Scope) -> SampledValue:
    """Return the value of the output of a Constant node of ONNX; it is unknown if a call sets its attribute."""
    tensor = next((attribute for attribute in node.attribute if attribute.name == "value"), None)
    if tensor is not None and not tensor.ref_attr_name:
        return value_of_tensor(tensor.t, scope.weights)
    array = scope.constant(node.output[0])
    return SampledValue() if array is None else known_value(array)
