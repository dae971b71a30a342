"""What an Attention adds to its scores: the mask, the causal frontier, the window and the padding of the keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import iota

__all__ = ["Mask"]

_Fixed = np.ndarray[Any, np.dtype[np.bool_]]

_LARGEST = 65536
"""Elements up to which a mask that follows from fixed lengths is written as a constant."""


@dataclass
class Mask:
    """The mask of one Attention node. `query` and `key` have the queries and keys on `axis`, `past` has cached keys on axis 2."""

    rw: LoweringRewriter
    query: str
    key: str
    axis: int = 2
    past: str = ""
    """The cached keys if `key` does not include them."""

    def padded(self, mask: str) -> str:
        """Return a mask with its last axis padded to the number of keys, `mask` itself if it is known to have that."""
        rw = self.rw
        shape = rw.shape(mask)
        length, total = shape[-1] if shape else None, self._total()
        if length is not None and total is not None:
            if length >= total:
                return mask
            amount = rw.constant(np.array([0, total - length], np.int64), "mask_padding")
        else:
            sizes = [self._total_size(), rw.before("Shape", [mask], hint="mask_length", start=-1)]
            missing = rw.before("Sub", sizes, hint="mask_missing")
            amount = rw.before(
                "Concat", [rw.constant(np.array([0]), "none"), missing], hint="mask_padding", axis=0
            )
        dtype = rw.need_dtype(mask)
        if dtype != TensorProto.BOOL and dtype != (wanted := rw.need_dtype(rw.input(0))):
            mask, dtype = rw.before("Cast", [mask], hint="mask", to=wanted), wanted
        fill = np.array(False) if dtype == TensorProto.BOOL else np.array(-np.inf, _numpy(dtype))
        return rw.before(
            "Pad",
            [mask, amount, rw.constant(fill, "hidden"), rw.constant(np.array([-1]), "last")],
            hint="mask_padded",
        )

    def bias(self, dtype: int) -> str:
        """Return what is added to the scores, of element type `dtype`, "" for nothing."""
        rw, mask = self.rw, self.rw.input(3)
        if mask and rw.version >= 23:
            mask = self.padded(mask)
        boolean = bool(mask) and rw.need_dtype(mask) == TensorProto.BOOL
        fixed = self._hidden_constant()
        bias = ""
        if fixed is not None and not boolean:
            if fixed.any():
                bias = rw.constant(np.where(fixed, -np.inf, 0).astype(_numpy(dtype)), "bias")
        else:
            bias = self._select(fixed, mask if boolean else "", dtype)
        if mask and not boolean:
            added = mask if rw.dtype(mask) == dtype else rw.before("Cast", [mask], hint="mask", to=dtype)
            bias = rw.before("Add", [added, bias], hint="bias") if bias else added
        return bias

    def _select(self, fixed: _Fixed | None, mask: str, dtype: int) -> str:
        """Return -inf where a boolean mask or positions hide a key, and 0 elsewhere."""
        rw = self.rw
        parts = (
            self._hidden_values() if fixed is None else [rw.constant(fixed, "hidden")] if fixed.any() else []
        )
        if mask:
            parts.append(rw.before("Not", [mask], hint="hidden"))
        found = parts[0]
        for part in parts[1:]:
            found = rw.before("Or", [found, part], hint="hidden")
        bounds = [rw.constant(np.array(value, _numpy(dtype)), "bias") for value in (-np.inf, 0)]
        return rw.before("Where", [found, *bounds], hint="bias")

    def hidden_rows(self, bias: str, dtype: int) -> str:
        """Return for each query whether all keys are hidden, "" if that cannot be."""
        rw = self.rw
        if not bias:
            return ""
        hidden = self._hidden_constant()
        if not rw.input(3) and hidden is not None and not hidden.all(-1).any():
            return ""
        if not rw.input(3) and not rw.input(6) and not any(size >= 0 for size in self._windows()):
            return ""  # a causal query sees at least the first key
        axis = rw.constant(np.array([-1]), "last")
        if rw.version >= 18:
            highest = rw.before("ReduceMax", [bias, axis], hint="highest")
        else:
            highest = rw.before("ReduceMax", [bias], hint="highest", axes=[-1])
        lowest = rw.constant(np.array(_lowest(dtype), _numpy(dtype)), "lowest")
        return rw.before("Less", [highest, lowest], hint="all_hidden")

    def _total(self) -> int | None:
        """Return the number of all keys, None where that is computed at run time."""
        keys = self._length(self.key)
        cached = self._length(self.past, 2) if self.past else 0
        return None if keys is None or cached is None else keys + cached

    def _total_size(self) -> str:
        sizes = [self._size(self.key), *([self._size(self.past, axis=2)] if self.past else [])]
        return self.rw.before("Add", sizes, hint="keys") if self.past else sizes[0]

    def _windows(self) -> tuple[int, int]:
        return self.rw.get("left_window_size", -1), self.rw.get("right_window_size", -1)

    def _frontier(self) -> tuple[int, int]:
        """Return how many keys before and after its own position a query sees at most, -1 for all."""
        left, right = self._windows()
        return left, 0 if self.rw.get("is_causal", 0) == 1 else right

    def _hidden_constant(self) -> _Fixed | None:
        """Return [queries, keys]: what causality and window hide; None where that is computed at run time."""
        left, right = self._frontier()
        if self.rw.input(6):
            return None
        if left < 0 and right < 0:
            return np.zeros((1, 1), bool)
        queries, keys, past = self._length(self.query), self._length(self.key), 0
        if self.rw.input(4):
            cached = self._length(self.rw.input(4))
            if cached is None:
                return None
            past = cached
        if queries is None or keys is None or queries * keys > _LARGEST:
            return None
        position, key = np.arange(queries)[:, None] + past, np.arange(keys)[None, :]
        hidden = np.zeros((queries, keys), bool)
        if right >= 0:
            hidden |= key > position + right
        if left >= 0:
            hidden |= key < position - left
        return hidden

    def _hidden_values(self) -> list[str]:
        """Return values that together say what causality, window and padding hide, computed at run time."""
        rw = self.rw
        left, right = self._frontier()
        keys = self._count(self.key)
        parts = []
        if left >= 0 or right >= 0:
            rows = rw.before(
                "Unsqueeze", [self._count(self.query), rw.constant(np.array([1]), "column")], hint="queries"
            )
            if rw.input(6):
                before = rw.before("Sub", [self._valid_keys(), self._size(self.query)], hint="offset")
                rows = rw.before("Add", [rows, before], hint="positions")
            elif rw.input(4):
                rows = rw.before("Add", [rows, self._size(rw.input(4))], hint="positions")
            if right >= 0:
                last = rw.before("Add", [rows, _number(rw, right)], hint="last_seen") if right else rows
                parts.append(rw.before("Less", [last, keys], hint="hidden_after"))
            if left >= 0:
                first = rw.before("Sub", [rows, _number(rw, left)], hint="first_seen")
                parts.append(rw.before("Less", [keys, first], hint="hidden_before"))
        if rw.input(6):
            last = rw.before("Sub", [self._valid_keys(), _number(rw, 1)], hint="last_valid")
            parts.append(rw.before("Less", [last, keys], hint="padding"))
        return parts

    def _valid_keys(self) -> str:
        """Return the number of keys of each item of the batch, [N, 1, 1, 1]."""
        axes = self.rw.constant(np.array([1, 2, 3]), "others")
        return self.rw.before("Unsqueeze", [self.rw.input(6), axes], hint="valid_keys")

    def _count(self, value: str) -> str:
        """Return 0, 1, 2 … along the axis of a value."""
        return iota(self.rw, self._size(value))

    def _length(self, value: str, axis: int | None = None) -> int | None:
        shape, axis = self.rw.shape(value), self.axis if axis is None else axis
        return shape[axis] if shape is not None and len(shape) > axis else None

    def _size(self, value: str, shape: tuple[int, ...] = (1,), axis: int | None = None) -> str:
        """Return the length of an axis as a value of one element."""
        length = self._length(value, axis)
        if length is not None:
            return _number(self.rw, length, shape)
        sizes = self.rw.before("Shape", [value], hint="shape")
        place = _number(self.rw, self.axis if axis is None else axis, shape)
        return self.rw.before("Gather", [sizes, place], hint="length")


def _number(rw: LoweringRewriter, value: int, shape: tuple[int, ...] = (1,)) -> str:
    return rw.constant(np.full(shape, value, np.int64), "number")


def _lowest(dtype: int) -> float:
    """Return the lowest finite number of a floating point type."""
    if dtype == TensorProto.BFLOAT16:
        return -3.3895313892515355e38
    if dtype == TensorProto.FLOAT16:
        return -65504.0
    return float(np.finfo(np.float64 if dtype == TensorProto.DOUBLE else np.float32).min)


def _numpy(dtype: int) -> np.dtype[np.generic]:
    return helper.tensor_dtype_to_np_dtype(dtype)
