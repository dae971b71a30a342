"""Gemm, Einsum and Det: products of matrices and of their elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import mul

import numpy as np

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, TensorProto, Value, formula
from onnx_migrate.messages import count_of


@formula("Gemm", since=11)
def gemm_11_down(op: Op, a: Value, b: Value, c: Value | None) -> Value:
    """An omitted `C` is added as a constant.

    What changes: the constant is a negative zero for floats, and a zero for integers.

    Why equal: x + -0 is x for every float, including a negative zero. x + 0 is not.
    """
    if c is not None:
        return op.itself(a, b, c)
    zero = -0.0 if a.numpy_type.kind == "f" else 0
    return op.itself(a, b, np.array([zero]).astype(a.numpy_type), beta=None)


@formula("Gemm", since=1, exactness=EQUIVALENT)
def gemm(
    op: Op,
    a: Value,
    b: Value,
    c: Value | None,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
) -> Value:
    """Gemm becomes alpha * A @ B + beta * C.

    Why equal: the text defines it so. Runtimes may add in another order: the largest difference seen is 1e-6 of the largest
    number.
    """
    a = op.Transpose(a, perm=[1, 0]) if transA else a
    b = op.Transpose(b, perm=[1, 0]) if transB else b
    product = a @ b
    if alpha != 1:
        product = product * alpha
    if c is None:
        return product
    return product + (c if beta == 1 else c * beta)


_NARROW: dict[int, int] = {
    TensorProto.INT8: TensorProto.INT32,
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT8: TensorProto.UINT32,
    TensorProto.UINT16: TensorProto.UINT32,
}
"""Integers that MatMul does not support, and wider types for the computation. Cast keeps the low bits, as wrap-around does."""


@formula("Einsum", since=12, exactness=EQUIVALENT)
def einsum(op: Op, *inputs: Value, equation: str) -> Value:
    """Einsum begins with opset 12, so the operands are multiplied and summed two at a time.

    What changes: a letter in only one operand and not in the output is summed first. If two operands share summed letters,
    they become a MatMul over the letters that both keep. Several other letters are flattened into one axis. Operands without
    shared summed letters become a Mul. If one term repeats a letter, a Gather selects the diagonal.

    Why equal: multiplication distributes over the sum (onnx/defs/math/defs.cc). The sums may be added in another order. For
    twelve common equations, the results equalled those of ONNX Runtime's kernel bit for bit. Integers are always equal. If
    nothing is summed, the kernel makes a negative zero positive.

    Limits: if a term has an ellipsis, the rank of its operand must be known.
    """
    terms, output = _parse(op, inputs, str(equation))
    dtype = inputs[0].dtype
    wide = _NARROW.get(dtype) if dtype is not None else None
    operands = [
        _diagonal(op, _Operand(value.cast(wide) if wide else value, labels))
        for value, labels in zip(inputs, terms, strict=True)
    ]
    operands_of: dict[str, list[tuple[Value, int]]] = {}
    for operand in operands:
        for axis, label in enumerate(operand.labels):
            operands_of.setdefault(label, []).append((operand.value, axis))
    contraction = _Contraction(op, output, operands_of)
    result = operands[0]
    for number, operand in enumerate(operands[1:], 2):
        later = {label for other in operands[number:] for label in other.labels}
        result = contraction.pair(result, operand, later | set(output))
    result = contraction.summed(result, set(output))
    value = contraction.ordered(result, output)
    return value.cast(dtype) if wide and dtype is not None else value


def _parse(op: Op, inputs: Sequence[Value], equation: str) -> tuple[list[list[str]], list[str]]:
    """Return the labels of each input's axes, and those of the output's. "-1" is the last axis of an ellipsis."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(inputs):
        op.refuse(f"equation {equation!r} does not fit {count_of(len(inputs), 'input')}", code="invalid-node")
    terms: list[list[str]] = []
    widest = 0
    for value, text in zip(inputs, texts, strict=True):
        dots = value.need_rank() - len(text.replace("...", "")) if "..." in text else 0
        widest = max(widest, dots)
        terms.append(_labels(text, dots))
    if not arrow:
        counts = Counter(left.replace(",", "").replace(".", ""))
        once = "".join(sorted(letter for letter, count in counts.items() if count == 1))
        right = ("..." if "..." in left else "") + once
    return terms, _labels(right, widest)


def _labels(text: str, dots: int) -> list[str]:
    first, ellipsis, last = text.partition("...")
    between = [str(index) for index in range(-dots, 0)] if ellipsis else []
    return [*first, *between, *last]


@dataclass(frozen=True)
class _Operand:
    """A value and the labels of its axes."""

    value: Value
    labels: list[str]


def _diagonal(op: Op, operand: _Operand) -> _Operand:
    """Replace two axes of the same label by their diagonal, until each label occurs once."""
    value, labels = operand.value, list(operand.labels)
    while len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        first = labels.index(label)
        two = labels.index(label, first + 1)
        others = [axis for axis in range(len(labels)) if axis not in (first, two)]
        size = op.size_of(value, first).as_written()
        perm = [*others, first, two]
        if perm != list(range(len(labels))):
            value = op.Transpose(value, perm=perm)
        value = value.reshape(*[0] * len(others), -1)
        # In a flattened matrix, elements of the diagonal are a row and an element apart.
        step = op.Add(size, [1])
        value = op.Gather(value, op.iota(size) * step, axis=len(others))
        labels = [*(labels[axis] for axis in others), label]
    return _Operand(value, labels)


class _Contraction:
    """Multiplies and sums operands for one equation."""

    def __init__(self, op: Op, output: Sequence[str], places: dict[str, list[tuple[Value, int]]]) -> None:
        self._op, self._places = op, places
        self._order = list(dict.fromkeys([*output, *places]))

    def pair(self, one: _Operand, two: _Operand, needed: Collection[str]) -> _Operand:
        """Return the product of two operands, summed over the labels that are not needed."""
        one = self.summed(one, {*needed, *two.labels})
        two = self.summed(two, {*needed, *one.labels})
        inner = [label for label in one.labels if label in two.labels and label not in needed]
        # MatMul does not broadcast the axis that it sums over.
        if not inner or any(self._broadcast(label) for label in inner):
            return self.summed(self._product(one, two), needed)
        batch = [
            label for label in self._order if label in one.labels and label in two.labels and label in needed
        ]
        rows = [label for label in self._order if label in one.labels and label not in two.labels]
        columns = [label for label in self._order if label in two.labels and label not in one.labels]
        left = self._matrix(self.ordered(one, [*batch, *rows, *inner]), batch, rows, inner)
        right = self._matrix(self.ordered(two, [*batch, *inner, *columns]), batch, inner, columns)
        value = left @ right
        if len(rows) > 1 or len(columns) > 1:
            value = self._reshape(value, len(batch), [[label] for label in [*rows, *columns]])
        else:
            gone = [len(batch) + at for at, group in enumerate((rows, columns)) if not group]
            value = self._op.Squeeze(value, gone) if gone else value
        return _Operand(value, [*batch, *rows, *columns])

    def summed(self, operand: _Operand, needed: Collection[str]) -> _Operand:
        """Sum an operand over the labels that are not needed."""
        axes = [axis for axis, label in enumerate(operand.labels) if label not in needed]
        if not axes:
            return operand
        value = self._op.ReduceSum(operand.value, axes, keepdims=False)
        return _Operand(value, [label for label in operand.labels if label in needed])

    def ordered(self, operand: _Operand, labels: list[str]) -> Value:
        """Return an operand's value with its axes in the order of `labels`, which lists all of them."""
        if operand.labels == labels:
            return operand.value
        return self._op.Transpose(operand.value, perm=[operand.labels.index(label) for label in labels])

    def _product(self, one: _Operand, two: _Operand) -> _Operand:
        labels = [label for label in self._order if label in one.labels or label in two.labels]
        values = []
        for operand in (one, two):
            own = [label for label in labels if label in operand.labels]
            value = self.ordered(operand, own)
            first = next((axis for axis, label in enumerate(labels) if label in own), len(labels))
            missing = [axis for axis, label in enumerate(labels) if label not in own and axis > first]
            if missing:  # Broadcasting adds the axes in front of the first one.
                value = self._op.Unsqueeze(value, [axis - first for axis in missing])
            values.append(value)
        return _Operand(values[0] * values[1], labels)

    def _matrix(self, value: Value, batch: list[str], rows: list[str], columns: list[str]) -> Value:
        """Return a value with one axis for the labels of the rows, and one for those of the columns."""
        if len(rows) > 1 or len(columns) > 1:
            return self._reshape(value, len(batch), [rows, columns])
        missing = [len(batch) + at for at, group in enumerate((rows, columns)) if not group]
        return self._op.Unsqueeze(value, missing) if missing else value

    def _reshape(self, value: Value, kept: int, groups: list[list[str]]) -> Value:
        """Keep the first axes, and make one axis for each group of labels after them."""
        op = self._op
        parts = [op.constant([0] * kept)] if kept else []
        free = next((group for group in groups if len(group) > 1), groups[0])
        for group in groups:
            if group is free and groups.count(group) == 1:
                parts.append(op.constant([-1]))
            else:
                sizes = [self._size(label) for label in group]
                parts.append(reduce(mul, sizes) if sizes else op.constant([1]))
        arrays = [part.constant for part in parts]
        if all(part is not None for part in arrays):
            return value.reshape(*(int(size) for part in arrays if part is not None for size in part))
        return op.Reshape(value, op.Concat(*parts, axis=0))

    def _size(self, label: str) -> Value:
        """Return the size of the axes of a label. An axis of unknown or larger size is preferred to one of size 1."""
        wider = next(
            (pair for pair in self._places[label] if self._known_size(*pair) != 1), self._places[label][0]
        )
        return self._op.size_of(*wider).as_written()

    def _broadcast(self, label: str) -> bool:
        """Return whether one operand has size 1 along a label, and another one has an unknown or larger size."""
        sizes = {self._known_size(*pair) for pair in self._places[label]}
        return 1 in sizes and len(sizes) > 1

    def _known_size(self, value: Value, axis: int) -> int | None:
        shape = value.shape
        return None if shape is None else shape[axis]


_LARGEST = 4


@formula("Det", since=11, exactness=EQUIVALENT)
def det(op: Op, x: Value) -> Value:
    """Det becomes the sum of products in Laplace's formula.

    Why equal: a determinant is that sum. ONNX Runtime eliminates rows first: the largest difference measured is 2.4e-7 of the
    largest product.

    Limits: the matrices must have 1 to 4 rows, and the number must be known.
    """
    rank = x.need_rank()
    size = next((length for length in (x.shape or ())[rank - 2 :] if length is not None), None)
    if size is None or not 1 <= size <= _LARGEST:
        op.refuse(
            f"Det does not exist below opset 11; onnx-migrate replaces it for matrices of 1 to {_LARGEST} rows. These have"
            f" {'an unknown number' if size is None else size}",
            code="needs-shape" if size is None else "no-equal",
            hint=FIX_DIMS if size is None else "",
        )

    @cache
    def element(row: int, column: int) -> Value:
        return op.Gather(op.Gather(x, row, axis=rank - 2), column, axis=rank - 2)

    @cache
    def determinant(columns: tuple[int, ...]) -> Value:
        """Return the determinant of these columns of the last rows."""
        row = size - len(columns)
        if len(columns) == 1:
            return element(row, columns[0])
        total = None
        for number, column in enumerate(columns):
            rest = determinant(columns[:number] + columns[number + 1 :])
            term = element(row, column) * rest
            total = term if total is None else total - term if number % 2 else total + term
        assert total is not None
        return total

    return determinant(tuple(range(size)))
