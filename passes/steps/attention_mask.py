"""The numbers that an Attention adds to its scores: for the mask, the causal limit, the window and the padding of the keys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import helper

from onnx_migrate.engine.steps.formula import Array, Op, TensorProto, Value

__all__ = ["Mask"]

_LARGEST = 65536
"""The most elements of a mask that becomes a constant. Such a mask follows from fixed lengths."""


@dataclass
class Mask:
    """The mask of one Attention node. Queries and keys are on `axis` of `query` and `key`, cached keys on axis 2 of `past`."""

    op: Op
    query: Value
    key: Value
    axis: int = 2
    past: Value | None = None
    """The cached keys, if `key` does not include them."""

    def padded(self, mask: Value) -> Value:
        """Return a mask whose last axis is padded to the number of keys, or `mask` itself if it is known to be long enough."""
        op = self.op
        shape = mask.shape
        length, total = shape[-1] if shape else None, self._total()
        if length is not None and total is not None:
            if length >= total:
                return mask
            amount = op.constant([0, total - length])
        else:
            amount = op.Concat([0], self._total_size() - op.Shape(mask, start=-1), axis=0)
        if mask.need_dtype() == TensorProto.BOOL:
            return op.Pad(mask, amount, np.array(False), [-1])
        query = op.input(0)
        assert query is not None
        mask = mask.cast(query.need_dtype())
        return op.Pad(mask, amount, np.array(-np.inf, query.numpy_type), [-1])

    def bias(self, dtype: int) -> Value | None:
        """Return the numbers that are added to the scores, with element type `dtype`, or None if there are none."""
        mask = self.op.input(3)
        if mask is not None and self.op.version >= 23:
            mask = self.padded(mask)
        fixed = self._hidden_constant()
        if mask is not None and mask.need_dtype() == TensorProto.BOOL:
            return self._select(fixed, mask, dtype)
        if fixed is None:
            bias = self._select(None, None, dtype)
        elif fixed.any():
            bias = self.op.constant(
                np.where(fixed, -np.inf, 0).astype(helper.tensor_dtype_to_np_dtype(dtype))
            )
        else:
            return None if mask is None else mask.cast(dtype)
        return bias if mask is None else mask.cast(dtype) + bias

    def _select(self, fixed: Array | None, mask: Value | None, dtype: int) -> Value:
        """Return -inf where a boolean mask or positions hide a key, and 0 elsewhere."""
        op = self.op
        parts = self._hidden_values() if fixed is None else [op.constant(fixed)] if fixed.any() else []
        if mask is not None:
            parts.append(~mask)
        hidden = parts[0]
        for part in parts[1:]:
            hidden = hidden | part
        bounds = (np.array(value, helper.tensor_dtype_to_np_dtype(dtype)) for value in (-np.inf, 0))
        return op.Where(hidden, *bounds)

    def hidden_rows(self, bias: Value | None, dtype: int) -> Value | None:
        """Return for each query whether all keys are hidden, or None if that cannot happen."""
        op = self.op
        if bias is None:
            return None
        hidden = self._hidden_constant()
        masked, lengths = op.input(3) is not None, op.input(6) is not None
        if not masked and hidden is not None and not hidden.all(-1).any():
            return None
        if not masked and not lengths and not any(size >= 0 for size in self._windows()):
            return None  # a causal query sees at least the first key
        # From opset 18 on, ReduceMax has its axes as an input.
        as_input = op.version >= 18
        highest = op.write("ReduceMax", bias, [-1] if as_input else None, axes=None if as_input else [-1])
        # Only minus infinity is below the lowest finite number.
        return op.Less(highest, np.array(_lowest(dtype), helper.tensor_dtype_to_np_dtype(dtype)))

    def _total(self) -> int | None:
        """Return the number of all keys, or None if it is computed at run time."""
        keys = self._length(self.key)
        cached = 0 if self.past is None else self._length(self.past, 2)
        return None if keys is None or cached is None else keys + cached

    def _total_size(self) -> Value:
        keys = self._size(self.key)
        return keys if self.past is None else keys.as_written() + self._size(self.past, 2)

    def _windows(self) -> tuple[int, int]:
        return self.op.rw.get("left_window_size", -1), self.op.rw.get("right_window_size", -1)

    def _frontier(self) -> tuple[int, int]:
        """Return how many keys before and after its own position a query sees at most. -1 means all."""
        left, right = self._windows()
        return left, 0 if self.op.rw.get("is_causal", 0) == 1 else right

    def _hidden_constant(self) -> Array | None:
        """Return a mask [queries, keys] of the keys that causality and window hide, or None if it is computed at run time."""
        left, right = self._frontier()
        if self.op.input(6) is not None:
            return None
        if left < 0 and right < 0:
            return np.zeros((1, 1), bool)
        cache = self.op.input(4)
        queries, keys = self._length(self.query), self._length(self.key)
        past = 0 if cache is None else self._length(cache)
        if past is None or queries is None or keys is None or queries * keys > _LARGEST:
            return None
        position, key = np.arange(queries)[:, None] + past, np.arange(keys)[None, :]
        hidden = np.zeros((queries, keys), bool)
        if right >= 0:
            hidden |= key > position + right
        if left >= 0:
            hidden |= key < position - left
        return hidden

    def _hidden_values(self) -> list[Value]:
        """Return values, computed at run time, that together show the keys hidden by causality, window and padding."""
        op = self.op
        left, right = self._frontier()
        keys = op.iota(self._size(self.key))
        cache, lengths = op.input(4), op.input(6)
        parts = []
        if left >= 0 or right >= 0:
            rows = op.Unsqueeze(op.iota(self._size(self.query)), [1])
            if lengths is not None:
                rows = rows + (self._valid_keys(lengths) - self._size(self.query))
            elif cache is not None:
                rows = rows + self._size(cache)
            if right >= 0:
                parts.append(op.Less(op.Add(rows, [right]) if right else rows, keys))
            if left >= 0:
                parts.append(op.Less(keys, op.Sub(rows, [left])))
        if lengths is not None:
            parts.append(op.Less(op.Sub(self._valid_keys(lengths), [1]), keys))
        return parts

    def _valid_keys(self, lengths: Value) -> Value:
        """Return the number of keys of each item of the batch, [N, 1, 1, 1]."""
        return self.op.Unsqueeze(lengths, [1, 2, 3])

    def _length(self, value: Value, axis: int | None = None) -> int | None:
        shape, axis = value.shape, self.axis if axis is None else axis
        return shape[axis] if shape is not None and len(shape) > axis else None

    def _size(self, value: Value, axis: int | None = None) -> Value:
        """Return the length of an axis as a value of one element."""
        length = self._length(value, axis)
        if length is not None:
            return self.op.constant([length])
        return self.op.Gather(self.op.Shape(value), [self.axis if axis is None else axis])


def _lowest(dtype: int) -> float:
    """Return the lowest finite number of a floating point type."""
    if dtype == TensorProto.BFLOAT16:
        return -3.3895313892515355e38
    if dtype == TensorProto.FLOAT16:
        return -65504.0
    return float(np.finfo(np.float64 if dtype == TensorProto.DOUBLE else np.float32).min)
