"""Writes formulas as nodes before the node that reads the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from ..domain import Array, Dim
from ..domain.values import dtype_of
from ..node_context import NodeContext
from .formula import Formula, Lengths, Quantity, Step
from .windows import WindowMasks

__all__ = ["TableWriter"]

_FIRST_RANGE, _FIRST_REDUCE_WITH_INPUT = 11, 18
"""The first opset with Range, and the first opset with the axes of a ReduceMin as an input."""


class TableWriter:
    """Writes the tables of one node's input. Raises UnrepairableNode if a length cannot be read from any value."""

    def __init__(self, context: NodeContext, index: int) -> None:
        self._context, self._index = context, index
        self._rw = context.rw

    def table(self, formulas: Sequence[Formula], shape: Sequence[int | Dim], joined: int, dtype: int) -> str:
        """Write a table of this shape, whose axis `joined` has the rows of all formulas; return its name."""
        parts = [self._numbers(formula, shape, joined, dtype) for formula in formulas]
        return parts[0] if len(parts) == 1 else self._write("Concat", parts, axis=joined)

    def masks(self, windows: WindowMasks, shape: Sequence[int | Dim]) -> str:
        """Write the masks of shifted windows; return their name."""
        rows, columns = (windows.segment.dim(axis) for axis in windows.segment.map_axes)
        down, across = self._is_last(rows, (-1, 1)), self._is_last(columns, (1, -1))
        doubled = self._write("Mul", [down, self._constant(np.array(2, np.int64))])
        cases = self._write("Add", [doubled, across])
        masks = self._write("Gather", [self._constant(windows.masks), cases])
        return self._reshaped(masks, shape)

    def _is_last(self, dim: Dim, shape: Sequence[int]) -> str:
        """Write a vector that is 1 at the last position of an axis, else 0."""
        last = self._write("Sub", [self._length(dim, np.int64), self._constant(np.array(1, np.int64))])
        is_last = self._write("Equal", [self._positions(dim), last])
        numbers = self._write("Cast", [is_last], to=onnx.TensorProto.INT64)
        return self._write("Reshape", [numbers, self._constant(np.array(shape, np.int64))])

    def _numbers(self, formula: Formula, shape: Sequence[int | Dim], joined: int, dtype: int) -> str:
        """Write the numbers of one formula in the shape of its rows of the table."""
        numbers = ""
        for selector in formula.selectors:
            along = np.ones(len(formula.axes), np.int64)
            along[selector.axis] = -1
            dim = formula.axes[selector.axis]
            assert isinstance(dim, Dim)
            term = self._cast(self._positions(dim), formula.dtype, np.dtype(np.int64))
            term = self._write("Reshape", [term, self._constant(along)])
            if (selector.factor != 1).any():
                term = self._write("Mul", [term, self._constant(selector.factor, formula.dtype)])
            numbers = self._write("Add", [numbers, term]) if numbers else term
        steps = list(formula.steps)
        if not numbers:
            # A table without positions holds one number for each column: all steps after the first keep it.
            operand = steps.pop(0).operand if steps else Quantity(np.zeros(()))
            numbers = self.quantity(operand, formula.dtype)
        for step in steps:
            numbers = self._after(numbers, step, formula)
        numbers = self._cast(numbers, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype)), formula.dtype)
        full = self._context.emit_shape(list(formula.axes), self._index)
        expanded = self._write("Expand", [numbers, full])
        rows = [-1 if axis == joined else size for axis, size in enumerate(shape)]
        return expanded if len(rows) == len(formula.axes) else self._reshaped(expanded, rows)

    def _after(self, numbers: str, step: Step, formula: Formula) -> str:
        dtype = formula.dtype
        operand = self.quantity(step.operand, dtype)
        if step.operator == "Waves":
            sine, cosine = (self._write(wave, [numbers]) for wave in ("Sin", "Cos"))
            rest = self._constant(1 - step.operand.constant, dtype)
            return self._write(
                "Add", [self._write("Mul", [sine, operand]), self._write("Mul", [cosine, rest])]
            )
        if step.operator == "Valid":
            return self._cast(self._valid(numbers, step, dtype), dtype, np.dtype(bool))
        if step.operator == "Logit":
            return self._logits(numbers, step, dtype)
        return self._write(step.operator, [numbers, operand])

    def _logits(self, numbers: str, step: Step, dtype: np.dtype[Any]) -> str:
        odds = self._write(
            "Div", [numbers, self._write("Sub", [self._constant(np.ones(()), dtype), numbers])]
        )
        logits = self._write("Log", [odds])
        if step.fill is None:
            return logits
        fill = self._constant(np.array(step.fill), dtype)
        return self._write("Where", [self._valid(numbers, step, dtype), logits, fill])

    def _valid(self, numbers: str, step: Step, dtype: np.dtype[Any]) -> str:
        """Write whether all proportions of a row keep the margin from 0 and from 1: the smallest distance is larger."""
        rest = self._write("Sub", [self._constant(np.ones(()), dtype), numbers])
        # ONNX has no reduction with And, so the smallest distance decides for all columns.
        least = self._write("Min", [numbers, rest])
        if self._rw.version < _FIRST_REDUCE_WITH_INPUT:
            least = self._write("ReduceMin", [least], axes=[step.row_axis], keepdims=1)
        else:
            axes = self._constant(np.array([step.row_axis], np.int64))
            least = self._write("ReduceMin", [least, axes], keepdims=1)
        return self._write("Greater", [least, self._constant(step.operand.constant, dtype)])

    def quantity(self, quantity: Quantity, dtype: np.dtype[Any]) -> str:
        """Write a number for each column; return its name."""
        constant = quantity.constant
        if quantity.times is not None:
            times = self._lengths(quantity.times, quantity.less, dtype)
            plain = bool((constant == 1).all())
            number = times if plain else self._write("Mul", [self._constant(constant, dtype), times])
        else:
            number = self._constant(constant, dtype)
        if quantity.over is None:
            return number
        return self._write("Div", [number, self._lengths(quantity.over, quantity.less, dtype)])

    def _lengths(self, lengths: Lengths, less: Array | None, dtype: np.dtype[Any]) -> str:
        total = ""
        for dim, mask in lengths.masks:
            term = self._length(dim, dtype)
            if (mask != 1).any():
                term = self._write("Mul", [term, self._constant(mask, dtype)])
            total = self._write("Add", [total, term]) if total else term
        if lengths.rest.any() or not total:
            rest = self._constant(lengths.rest, dtype)
            total = self._write("Add", [total, rest]) if total else rest
        return total if less is None else self._write("Sub", [total, self._constant(less, dtype)])

    def _positions(self, dim: Dim) -> str:
        """Write the numbers 0, 1, 2, ... up to a length, in int64."""
        if self._rw.version < _FIRST_RANGE:
            ones = self._write(
                "ConstantOfShape",
                [self._context.emit_shape([dim], self._index)],
                value=onnx.helper.make_tensor("value", onnx.TensorProto.INT64, [1], [1]),
            )
            return self._write("Reshape", [self._write("NonZero", [ones]), self._constant(np.array([-1]))])
        first, step = (self._constant(np.array(number, np.int64)) for number in (0, 1))
        return self._write("Range", [first, self._length(dim, np.int64), step])

    def _length(self, dim: Dim, dtype: Any) -> str:
        return self._context.emit_length(dim, np.dtype(dtype), self._index)

    def _reshaped(self, name: str, shape: Sequence[int | Dim]) -> str:
        return self._write("Reshape", [name, self._context.emit_shape(list(shape), self._index)])

    def _cast(self, name: str, dtype: np.dtype[Any], before: np.dtype[Any]) -> str:
        return name if dtype == before else self._write("Cast", [name], to=dtype_of(np.zeros(0, dtype)))

    def _constant(self, array: Array, dtype: np.dtype[Any] | None = None) -> str:
        return self._rw.constant(np.array(array, dtype or array.dtype, order="C"), "number")

    def _write(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:
        return self._rw.before(operator, inputs, hint="table", **attributes)
