"""Einsum: below opset 12 a sequence of Transpose, MatMul, Mul and ReduceSum, two operands at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.plural import count_of
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, iota, size_of, squeeze, unsqueeze

_NARROW: dict[int, int] = {
    TensorProto.INT8: TensorProto.INT32,
    TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT8: TensorProto.UINT32,
    TensorProto.UINT16: TensorProto.UINT32,
}
"""Integers that MatMul does not take, and those that it computes in; Cast keeps the low bits, as wrap-around does."""


@lowering("Einsum", leaves=12, exactness=Exactness.EQUIVALENT)
def einsum_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no Einsum: the operands are multiplied and summed two at a time.

    What changes: letters of one operand alone that the output lacks are summed at once. Two operands that share summed letters
    become a MatMul over the letters that both keep, with the others flattened where there are several; others become a Mul.
    A letter that one term repeats selects the diagonal by a Gather.

    Why equal: multiplication distributes over the sum (onnx/defs/math/defs.cc). Sums may be added up in another order. Of
    twelve usual equations the results were those of ONNX Runtime's kernel bit for bit; integers always are. The kernel
    makes a negative zero positive where nothing is summed.

    Limits: the rank of an operand whose term has an ellipsis must be known.
    """
    terms, output = _parse(rw)
    dtype = rw.dtype(rw.input(0))
    wide = _NARROW.get(dtype) if dtype is not None else None
    operands = [_Operand(cast(rw, name, wide) if wide else name, labels) for name, labels in terms]
    operands = [_diagonal(rw, operand) for operand in operands]
    names: dict[str, list[tuple[str, int]]] = {}
    for operand in operands:
        for axis, label in enumerate(operand.labels):
            names.setdefault(label, []).append((operand.value, axis))
    contraction = _Contraction(rw, output, names)
    result = operands[0]
    for number, operand in enumerate(operands[1:], 2):
        later = {label for other in operands[number:] for label in other.labels}
        result = contraction.pair(result, operand, later | set(output))
    result = contraction.summed(result, set(output))
    value = contraction.ordered(result, output).value
    if wide and dtype is not None:
        value = rw.before("Cast", [value], hint="narrow", to=dtype)
    _produce(rw, value)


def _parse(rw: LoweringRewriter) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Return each input with the labels of its axes, and the labels of the output's; "-1" is the last of an ellipsis."""
    equation = str(rw.get("equation")).replace(" ", "")
    left, arrow, right = equation.partition("->")
    texts = left.split(",")
    if len(texts) != len(rw.node.input):
        rw.refuse(
            f"equation {equation!r} does not fit {count_of(len(rw.node.input), 'input')}", code="invalid-node"
        )
    terms: list[tuple[str, list[str]]] = []
    widest = 0
    for name, text in zip(rw.node.input, texts, strict=True):
        dots = rw.need_rank(name) - len(text.replace("...", "")) if "..." in text else 0
        widest = max(widest, dots)
        terms.append((name, _labels(text, dots)))
    if not arrow:
        counts = Counter(left.replace(",", "").replace(".", ""))
        once = "".join(sorted(letter for letter, count in counts.items() if count == 1))
        right = ("..." if "..." in left else "") + once
    return terms, _labels(right, widest)


def _labels(text: str, dots: int) -> list[str]:
    first, ellipsis, last = text.partition("...")
    between = [str(place) for place in range(-dots, 0)] if ellipsis else []
    return [*first, *between, *last]


@dataclass(frozen=True)
class _Operand:
    """A value and the labels of its axes."""

    value: str
    labels: list[str]


def _diagonal(rw: LoweringRewriter, operand: _Operand) -> _Operand:
    """Replace two axes of the same label by their diagonal, until each label stands once."""
    value, labels = operand.value, list(operand.labels)
    while len(set(labels)) < len(labels):
        label = next(label for label in labels if labels.count(label) > 1)
        one = labels.index(label)
        two = labels.index(label, one + 1)
        kept = [axis for axis in range(len(labels)) if axis not in (one, two)]
        size = size_of(rw, value, one)
        perm = [*kept, one, two]
        if perm != list(range(len(labels))):
            value = rw.before("Transpose", [value], hint="diagonal_last", perm=perm)
        value = rw.before("Reshape", [value, integers(rw, *[0] * len(kept), -1)], hint="flat")
        step = rw.before("Add", [size, integers(rw, 1)], hint="step")
        places = rw.before("Mul", [iota(rw, size), step], hint="places")
        value = rw.before("Gather", [value, places], hint="diagonal", axis=len(kept))
        labels = [*(labels[axis] for axis in kept), label]
    return _Operand(value, labels)


class _Contraction:
    """Multiplies and sums operands for one equation."""

    def __init__(
        self, rw: LoweringRewriter, output: Sequence[str], places: dict[str, list[tuple[str, int]]]
    ) -> None:
        self._rw, self._places = rw, places
        self._order = list(dict.fromkeys([*output, *places]))

    def pair(self, one: _Operand, two: _Operand, needed: Collection[str]) -> _Operand:
        """Return the product of two operands, summed over the labels that are not needed."""
        one = self.summed(one, {*needed, *two.labels})
        two = self.summed(two, {*needed, *one.labels})
        inner = [label for label in one.labels if label in two.labels and label not in needed]
        if not inner or any(self._broadcast(label) for label in inner):
            return self.summed(self._product(one, two), needed)
        batch = [
            label for label in self._order if label in one.labels and label in two.labels and label in needed
        ]
        rows = [label for label in self._order if label in one.labels and label not in two.labels]
        columns = [label for label in self._order if label in two.labels and label not in one.labels]
        left = self._matrix(self.ordered(one, [*batch, *rows, *inner]).value, batch, rows, inner)
        right = self._matrix(self.ordered(two, [*batch, *inner, *columns]).value, batch, inner, columns)
        value = self._rw.before("MatMul", [left, right], hint="product")
        if len(rows) > 1 or len(columns) > 1:
            count = len(batch)
            value = self._reshape(value, count, [[label] for label in [*rows, *columns]])
        else:
            gone = [len(batch) + place for place, group in enumerate((rows, columns)) if not group]
            value = squeeze(self._rw, value, gone) if gone else value
        return _Operand(value, [*batch, *rows, *columns])

    def summed(self, operand: _Operand, needed: Collection[str]) -> _Operand:
        """Sum an operand over the labels that are not needed."""
        axes = [axis for axis, label in enumerate(operand.labels) if label not in needed]
        if not axes:
            return operand
        value = self._rw.before("ReduceSum", [operand.value], hint="sum", axes=axes, keepdims=0)
        return _Operand(value, [label for label in operand.labels if label in needed])

    def ordered(self, operand: _Operand, labels: list[str]) -> _Operand:
        """Return an operand with its axes in the order of `labels`, which are its own."""
        if operand.labels == labels:
            return operand
        perm = [operand.labels.index(label) for label in labels]
        return _Operand(self._rw.before("Transpose", [operand.value], hint="ordered", perm=perm), labels)

    def _product(self, one: _Operand, two: _Operand) -> _Operand:
        labels = [label for label in self._order if label in one.labels or label in two.labels]
        values = []
        for operand in (one, two):
            own = [label for label in labels if label in operand.labels]
            value = self.ordered(operand, own).value
            first = next((axis for axis, label in enumerate(labels) if label in own), len(labels))
            missing = [axis for axis, label in enumerate(labels) if label not in own and axis > first]
            if missing:  # Axes in front of the first are added by broadcasting.
                value = unsqueeze(self._rw, value, [axis - first for axis in missing])
            values.append(value)
        return _Operand(self._rw.before("Mul", values, hint="product"), labels)

    def _matrix(self, value: str, batch: list[str], rows: list[str], columns: list[str]) -> str:
        """Return a value with one axis for the labels of the rows, and one for those of the columns."""
        if len(rows) > 1 or len(columns) > 1:
            return self._reshape(value, len(batch), [rows, columns])
        missing = [len(batch) + place for place, group in enumerate((rows, columns)) if not group]
        return unsqueeze(self._rw, value, missing) if missing else value

    def _reshape(self, value: str, kept: int, groups: list[list[str]]) -> str:
        """Keep the first axes, and make one axis for each group of labels after them."""
        rw = self._rw
        parts = [integers(rw, *[0] * kept)] if kept else []
        free = next((group for group in groups if len(group) > 1), groups[0])
        for group in groups:
            if group is free and groups.count(group) == 1:
                parts.append(integers(rw, -1))
                continue
            sizes = [self._size(label) for label in group]
            if not sizes:
                parts.append(integers(rw, 1))
                continue
            product = sizes[0]
            for size in sizes[1:]:
                product = rw.before("Mul", [product, size], hint="size")
            parts.append(product)
        known = [rw.known(part) for part in parts]
        if all(part is not None for part in known):
            shape = integers(rw, *(int(size) for part in known if part is not None for size in part))
        else:
            shape = rw.before("Concat", parts, hint="shape", axis=0)
        return rw.before("Reshape", [value, shape], hint="grouped")

    def _size(self, label: str) -> str:
        """Return the size of the axes of a label; where one of them is known to be 1, of another."""
        wider = next(
            (place for place in self._places[label] if self._known_size(*place) != 1), self._places[label][0]
        )
        return size_of(self._rw, *wider)

    def _broadcast(self, label: str) -> bool:
        """Return whether one operand has a single element along a label, and another is not known to have."""
        sizes = {self._known_size(*place) for place in self._places[label]}
        return 1 in sizes and len(sizes) > 1

    def _known_size(self, value: str, axis: int) -> int | None:
        shape = self._rw.shape(value)
        return None if shape is None else shape[axis]


def _produce(rw: LoweringRewriter, value: str) -> None:
    """Let the last node that was written produce the output, or the node itself if there is none."""
    if rw.preceding and rw.preceding[-1].output[0] == value:
        rw.preceding[-1].output[0] = rw.output(0)
        rw.remove()
        return
    rw.rename("Identity")
    rw.drop("equation")
    del rw.node.input[:]
    rw.node.input.append(value)
