"""Writes a Resize as Gathers of the elements that it samples, with their weights: below opset 11 it has fewer modes."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ...lowerings.folding import Array, Folding, Operand
from ...lowerings.selecting import select
from .sampling import Axis, Modes, antialias_matrix, antialiased, coordinates, cubic, linear, nearest, outside

__all__ = ["end_with", "write_taps"]

_LARGEST_PRODUCT = 4096
"""Elements of a product of weights that is stored; a larger one is computed at run time, by one Mul."""


def write_taps(rw: LoweringRewriter, f: Folding, axes: list[Axis], modes: Modes) -> None:
    """Write the Resize of `axes`, in their order, without a Resize. The other axes stay as they are."""
    source = rw.input(0)
    rank = rw.need_rank(source)
    crop = modes.coordinates == "tf_crop_and_resize"
    ats = [coordinates(f, axis, modes.coordinates) for axis in axes]
    dtype = rw.need_dtype(source) if modes.mode != "nearest" or crop else TensorProto.FLOAT
    real = TensorProto.DOUBLE if dtype == TensorProto.DOUBLE else TensorProto.FLOAT
    value = source
    if modes.mode == "nearest":
        for axis, at in zip(axes, ats, strict=True):
            value = _gather(rw, f, value, nearest(f, axis, at, modes.rounding), axis.place)
    else:
        if dtype != real:
            value = rw.before("Cast", [value], hint="real", to=real)
        if modes.antialias:
            value = _antialiased(rw, f, value, axes, modes, rank, real)
        elif modes.mode == "linear":
            value = _linear(rw, f, value, axes, ats, rank, real)
        else:
            value = _cubic(rw, f, value, axes, ats, modes, rank, real)
        if dtype != real:
            value = rw.before("Cast", [value], hint="narrow", to=dtype)
    if crop:
        value = _extrapolated(rw, f, value, axes, ats, modes, rank, dtype)
    end_with(rw, value)


def end_with(rw: LoweringRewriter, value: str) -> None:
    """Replace the node by those written before it, the last of which produces `value`."""
    last = rw.preceding[-1] if rw.preceding else None
    if last is None or list(last.output) != [value]:
        rw.rename("Identity")
        rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
        del rw.node.input[:]
        rw.node.input.append(value)
        return
    last.output[0] = rw.output(0)
    rw.remove()


def _gather(rw: LoweringRewriter, f: Folding, value: str, index: Operand, axis: int) -> str:
    return rw.before("Gather", [value, f.name(index, "taken")], hint="taken", axis=axis)


def _weights(f: Folding, weights: Operand, behind: int, real: int) -> Operand:
    return f.shaped(f.cast(weights, real), behind)


def _linear(
    rw: LoweringRewriter, f: Folding, value: str, axes: list[Axis], ats: list[Operand], rank: int, real: int
) -> str:
    """Weigh the corners around each coordinate and add them in the kernel's order, the last axis changing fastest."""
    corners: list[tuple[str, list[Operand]]] = [(value, [])]
    for axis, at in zip(axes, ats, strict=True):
        samples = [
            (index, _weights(f, weights, rank - 1 - axis.place, real))
            for index, weights in linear(f, axis, at)
        ]
        corners = [
            (_gather(rw, f, corner, index, axis.place), [weights, *others])
            for corner, others in corners
            for index, weights in samples
        ]
    products: dict[tuple[str, ...], Operand] = {}
    total = ""
    for corner, factors in corners:
        weight = factors[0]
        for factor in factors[1:]:
            weight = _product(f, weight, factor, products)
        term = rw.before("Mul", [corner, f.name(weight, "weights")], hint="term")
        total = rw.before("Add", [total, term], hint="sum") if total else term
    return total


def _product(f: Folding, a: Operand, b: Operand, products: dict[tuple[str, ...], Operand]) -> Operand:
    if not isinstance(a, str) and not isinstance(b, str) and a.size * b.size <= _LARGEST_PRODUCT:
        return np.asarray(a * b)
    key = (f.name(a, "weights"), f.name(b, "weights"))
    if key not in products:
        products[key] = f.node("Mul", a, b, hint="weights")
    return products[key]


def _cubic(
    rw: LoweringRewriter,
    f: Folding,
    value: str,
    axes: list[Axis],
    ats: list[Operand],
    modes: Modes,
    rank: int,
    real: int,
) -> str:
    """Interpolate the last axis first. The kernel divides its weights, and the products of the other axis."""
    last = True
    for axis, at in reversed(list(zip(axes, ats, strict=True))):
        samples, divisor = cubic(f, axis, at, modes)
        behind = rank - 1 - axis.place
        total = ""
        for index, weights in samples:
            if last and divisor is not None:
                weights = f("Div", weights, divisor)
            tap = _gather(rw, f, value, index, axis.place)
            term = rw.before("Mul", [tap, f.name(_weights(f, weights, behind, real), "weights")], hint="term")
            if not last and divisor is not None:
                term = rw.before(
                    "Div", [term, f.name(_weights(f, divisor, behind, real), "divisor")], hint="term"
                )
            total = rw.before("Add", [total, term], hint="sum") if total else term
        value, last = total, False
    return _not_minus_zero(rw, f, value, real)


def _antialiased(
    rw: LoweringRewriter, f: Folding, value: str, axes: list[Axis], modes: Modes, rank: int, real: int
) -> str:
    for axis in reversed(axes):
        if not axis.fixed:
            value = _by_matrix(rw, f, value, axis, modes, rank, real)
            continue
        if bool(np.asarray(axis.length)[0] == np.asarray(axis.size)[0]):
            continue
        total = ""
        for index, weights in antialiased(axis, modes):
            shaped = _weights(f, weights, rank - 1 - axis.place, real)
            tap = _gather(rw, f, value, index, axis.place)
            term = rw.before("Mul", [tap, f.name(shaped, "weights")], hint="term")
            total = rw.before("Add", [total, term], hint="sum") if total else term
        value = total or value
    return _not_minus_zero(rw, f, value, real)


def _by_matrix(
    rw: LoweringRewriter, f: Folding, value: str, axis: Axis, modes: Modes, rank: int, real: int
) -> str:
    """Multiply an axis, which is exchanged with the last but one, by a matrix of weights."""
    matrix = rw.before("Cast", [antialias_matrix(f, axis, modes)], hint="weights", to=real)
    perm = list(range(rank))
    perm[axis.place], perm[rank - 2] = rank - 2, axis.place
    if axis.place != rank - 2:
        value = rw.before("Transpose", [value], hint="exchanged", perm=perm)
    value = rw.before("MatMul", [matrix, value], hint="weighed")
    return value if axis.place == rank - 2 else rw.before("Transpose", [value], hint="exchanged", perm=perm)


def _not_minus_zero(rw: LoweringRewriter, f: Folding, value: str, real: int) -> str:
    """Add 0, from which the kernel's sums start: of terms that are all -0 it makes 0."""
    return rw.before("Add", [value, f.name(f.cast(np.zeros(1, np.float32), real), "zero")], hint="sum")


def _extrapolated(
    rw: LoweringRewriter,
    f: Folding,
    value: str,
    axes: list[Axis],
    ats: list[Operand],
    modes: Modes,
    rank: int,
    dtype: int,
) -> str:
    """Write the extrapolation value where a coordinate lies outside the input."""
    out: Operand | None = None
    for axis, at in zip(axes, ats, strict=True):
        beyond = outside(f, axis, at)
        if not isinstance(beyond, str) and not beyond.any():
            continue
        shaped = f.shaped(beyond, rank - 1 - axis.place)
        out = shaped if out is None else f("Or", out, shaped)
    if out is None:
        return value
    constant: Array = np.array([modes.extrapolation_value], np.float32)
    filler = f.cast(constant, dtype)
    return select(rw, f.name(out, "outside"), f.name(filler, "extrapolation"), value)
