"""Attention by heads as ONNX Runtime computes it, with masks, caches and biases, as Attention or as older operators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value
from onnx_migrate.rewrite.bounded_arrays import bounded

__all__ = ["END", "LOWEST", "Heads", "by_head", "joined", "repeated", "scale_of"]

_T = TensorProto

_DIRECT = 23
"""The first opset with the standard's Attention."""

END = int(np.iinfo(np.int64).max)
"""The end of a Slice that reads everything up to the end of an axis."""

LOWEST = float(np.finfo(np.float32).min)
"""The number that the kernels add to the scores of later keys, instead of minus infinity."""


def by_head(value: Value, heads: int) -> Value:
    """Return (batch, length, heads · size) as (batch, heads, length, size)."""
    shape = value.shape
    size = shape[2] // heads if shape is not None and len(shape) == 3 and shape[2] is not None else -1
    return value.op.Transpose(value.reshape(0, 0, heads, size), perm=[0, 2, 1, 3])


def joined(op: Op, value: Value) -> Value:
    """Return (batch, heads, length, size) with the heads side by side: (batch, length, heads · size)."""
    sizes = [size for size in (value.shape or ())[1::2] if size is not None]
    hidden = sizes[0] * sizes[1] if len(sizes) == 2 else -1
    return op.Transpose(value, perm=[0, 2, 1, 3]).reshape(0, 0, hidden)


def repeated(value: Value, axis: int, own: int, heads: int) -> Value:
    """Return a value with each of its `own` heads, along an axis, repeated until there are `heads`."""
    if own == heads:
        return value
    return value.op.Gather(value, np.repeat(np.arange(own), bounded(heads) // own), axis=axis)


def scale_of(op: Op, query: Value, heads: int, scale: float) -> Value | float:
    """Return the factor of the scores. By default it is 1 divided by the square root of the size of a head."""
    shape = query.shape
    width = shape[-1] if shape is not None else None
    if scale:
        return float(np.float32(scale))
    if width is not None:
        return float(np.float32(1) / np.sqrt(np.float32(width // (heads if len(shape or ()) == 3 else 1))))
    size = op.Squeeze(op.size_of(query, -1), [0]).cast(_T.FLOAT)
    if query.need_rank() == 3:
        size = size / heads
    return op.Reciprocal(op.Sqrt(size)).cast(query.need_dtype())


@dataclass
class Heads:
    """One attention between queries, keys and values, each split into heads.

    Queries are (batch, length, heads · size). Keys and values have the same three axes, or are already by head, (batch,
    heads, length, size). Cached keys and values are always by head.
    """

    op: Op
    count: int
    query: Value
    key: Value
    value: Value
    scale: float = 0.0
    past_key: Value | None = None
    past_value: Value | None = None
    causal: bool = False

    @property
    def total(self) -> Value:
        """The number of keys, including cached ones, as int64 of shape [1]."""
        keys = self.op.size_of(self.key, 1 if self.key.need_rank() == 3 else 2)
        return keys if self.past_key is None else self.op.size_of(self.past_key, 2) + keys

    def mask(self, mask: Value | None, filtered: float) -> Value | None:
        """Return the numbers that an int32 mask adds to the scores, on four axes.

        Keys that are not seen get `filtered`, and the others 0. The shape of the mask decides its meaning:

        - (batch, keys) or (batch, queries, keys): positive for the keys that are seen.
        - (batch) or (3 · batch + 2): begins with the number of keys that are seen.
        - (2 · batch): the ends of the keys that are seen, then their starts.
        """
        op = self.op
        if mask is None:
            return None
        rank, shape = mask.need_rank(), mask.shape or ()
        if rank > 3:
            op.refuse("its mask has more than three axes", code="no-equal")
        if rank == 1:
            seen = op.Unsqueeze(self._by_lengths(mask), [1, 2])
        else:
            keys = self.key.shape
            total = None if keys is None else keys[1 if len(keys) == 3 else 2]
            if rank == 2 and shape[1] == 1 and (total != 1 or self.past_key is not None):
                return None  # the kernel treats it as a missing mask
            seen = op.Unsqueeze(mask > 0, [1, 2] if rank == 2 else [1])
        bias = op.Where(seen, op.constant(np.float32(0)), op.constant(np.float32(filtered)))
        return bias.cast(self.query.need_dtype())

    def _by_lengths(self, mask: Value) -> Value:
        """Return a mask of the keys that are seen, (batch, keys), from their number, or from their ends and starts."""
        op, mask_size = self.op, (mask.shape or (None,))[0]
        batch = (self.query.shape or (None,))[0]
        positions = op.iota(self.total)
        lengths = mask.cast(_T.INT64)
        if mask_size is None or batch is None:
            mask_symbols, other = (op.rw.scope.value_type(value.name).symbols for value in (mask, self.query))
            if mask_symbols and other and mask_symbols[0] and mask_symbols[0] == other[0]:
                # Two lengths with one symbol are equal, and here it only matters that they are.
                mask_size = batch = 1
        if (
            mask_size is not None and batch is not None and mask_size == 3 * batch + 2
        ):  # behind them, where packed items start
            lengths, mask_size = op.Slice(lengths, [0], [batch], [0]), batch
        if mask_size is not None and mask_size == batch:
            return positions < op.Unsqueeze(lengths, [1])
        batch_size = op.size_of(self.query, 0)
        ends = op.write("Slice", lengths, [0], batch_size, [0])
        if (
            mask_size is None or batch is None
        ):  # behind the ends of the keys are their starts, or something else, or nothing
            both = op.Equal(op.size_of(mask, 0), batch_size * 2).cast(_T.INT64)
            lengths = op.Concat(lengths, ends, axis=0) * both
        elif mask_size != 2 * batch:
            op.refuse("its mask has neither one nor two numbers for each item of the batch", code="no-equal")
        starts = op.write("Slice", lengths, batch_size, batch_size * 2, [0])
        return (positions < op.Unsqueeze(ends, [1])) & ~(positions < op.Unsqueeze(starts, [1]))

    def attend(self, mask: Value | None, bias: Value | None) -> tuple[Value, Value, Value, Value]:
        """Return the output (batch, length, heads · size), keys and values with the cached ones, and the masked scores."""
        # If the mask has large numbers, the sum of mask and bias is rounded. The kernel adds them one after the other.
        direct = self.op.version >= _DIRECT and (mask is None or bias is None)
        return self._direct(mask, bias) if direct else self._written_out(mask, bias)

    def in_buffer(
        self, past: Value, beams: Value | None, mask: Value | None, filtered: float, bias: Value | None
    ) -> tuple[Value, Value, Value, Value]:
        """Return the results of `attend` for caches that are buffers: only their first `past` rows are in use.

        The returned caches are the whole buffers. `beams` (batch / beams, beams, rows) tells, for each cached row, the beam
        that a single query reads.
        """
        op, new = self.op, [by_head(part, self.count) for part in (self.key, self.value)]
        assert self.past_key is not None
        assert self.past_value is not None
        past, steps = past.cast(_T.INT64).reshape(-1), op.size_of(self.query, 1)
        caches = (self.past_key, self.past_value)
        old = [op.write("Slice", cache, [0], past, [2]) for cache in caches]
        ends = [op.write("Slice", cache, past + steps, [END], [2]) for cache in caches]
        seen = old if beams is None else self._of_beams(old, beams, past, bias)
        heads = replace(self, key=new[0], value=new[1], past_key=seen[0], past_value=seen[1])
        result, _, _, scores = heads.attend(heads.mask(mask, filtered), bias)
        stored = [op.Concat(*rows, axis=2) for rows in zip(old, new, ends, strict=True)]
        return result, stored[0], stored[1], scores

    def _of_beams(self, caches: list[Value], beams: Value, past: Value, bias: Value | None) -> list[Value]:
        """Return cached rows, (batch, heads, past, size). Each row comes from the batch item of its beam."""
        op = self.op
        if bias is not None and (bias.shape or (None,))[0] != 1:
            op.refuse(
                "each beam has a bias of its own, and the kernel uses the bias of another beam",
                code="no-equal",
            )
        width, batch = op.size_of(beams, 1), op.size_of(self.query, 0)
        rows = op.Unsqueeze(op.iota(batch), [1])
        table = op.Reshape(beams.cast(_T.INT64), op.Concat([-1], op.size_of(beams, 2), axis=0))
        source = op.write("Slice", table, [0], past, [1]) + rows / width * width
        single = op.Equal(op.size_of(self.query, 1), [1])  # else the kernel keeps the order of the rows
        indices = op.Unsqueeze(op.Where(single, source, rows), [1, 3])
        return [op.GatherElements(cache, op.Expand(indices, op.Shape(cache)), axis=0) for cache in caches]

    def _direct(self, mask: Value | None, bias: Value | None) -> tuple[Value, Value, Value, Value]:
        op, flat = self.op, self.key.need_rank() == 3
        query = self.query if flat else by_head(self.query, self.count)
        if mask is not None:
            mask = op.Expand(mask, op.Concat([1, 1], op.size_of(self.query, 1), self.total, axis=0))
        settings: dict[str, Any] = {"is_causal": int(self.causal), "scale": float(self.scale) or None}
        settings |= {"q_num_heads": self.count, "kv_num_heads": self.count} if flat else {}
        settings |= {"qk_matmul_output_mode": 2} if op.is_read(3) else {}
        operands = (
            query,
            self.key,
            self.value,
            bias if mask is None else mask,
            self.past_key,
            self.past_value,
        )
        wanted = 4 if op.is_read(3) else 3
        outputs = op.several("Attention", wanted, *operands, **settings)
        return outputs[0] if flat else joined(op, outputs[0]), outputs[1], outputs[2], outputs[-1]

    def _written_out(self, mask: Value | None, bias: Value | None) -> tuple[Value, Value, Value, Value]:
        op = self.op
        query = by_head(self.query, self.count)
        key, value = (
            by_head(part, self.count) if part.need_rank() == 3 else part for part in (self.key, self.value)
        )
        key = key if self.past_key is None else op.Concat(self.past_key, key, axis=2)
        value = value if self.past_value is None else op.Concat(self.past_value, value, axis=2)
        scores = (
            query @ op.Transpose(key, perm=[0, 1, 3, 2]) * scale_of(op, self.query, self.count, self.scale)
        )
        for added in (bias, mask):
            scores = scores if added is None else scores + added
        if self.causal:
            scores = op.Where(self._later(query, key), op.constant(LOWEST, scores), scores)
        result = op.Softmax(scores, axis=-1) @ value
        return joined(op, result), key, value, scores

    def _later(self, query: Value, key: Value) -> Value:
        """Return a mask (queries, keys) of the keys that come after a query. The last query stands at the last key."""
        op = self.op
        total, length = op.size_of(key, 2), op.size_of(query, 2)
        rows = op.iota(length) + (total - length)
        return op.iota(total) > op.Unsqueeze(rows, [1])
