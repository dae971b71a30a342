"""ONNX Runtime's attentions (com.microsoft): Attention, QAttention, MultiHeadAttention, RotaryEmbedding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Result, TensorProto, Value, formula

__all__ = ["Heads", "biased", "by_head", "joined", "scale_of"]

_T = TensorProto

_DIRECT = 23
"""The opset from which on the standard has Attention."""

_END = int(np.iinfo(np.int64).max)

_LOWEST = float(np.finfo(np.float32).min)
"""What the kernels add to the scores of keys behind a query, in place of minus infinity."""


def by_head(value: Value, heads: int) -> Value:
    """Return (batch, length, heads · size) as (batch, heads, length, size)."""
    shape = value.shape
    size = shape[2] // heads if shape is not None and len(shape) == 3 and shape[2] is not None else -1
    return value.op.Transpose(value.reshape(0, 0, heads, size), perm=[0, 2, 1, 3])


def joined(op: Op, value: Value) -> Value:
    """Return (batch, heads, length, size) with the heads side by side: (batch, length, heads · size)."""
    shape = value.shape
    sizes = shape[1::2] if shape is not None else ()
    hidden = sizes[0] * sizes[1] if len(sizes) == 2 and None not in sizes else -1  # type: ignore[operator]
    return op.Transpose(value, perm=[0, 2, 1, 3]).reshape(0, 0, hidden)


def scale_of(op: Op, query: Value, heads: int, scale: float) -> Value | float:
    """Return the factor of the scores: 1 divided by the root of the size of a head unless another one is given."""
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
    """One attention: the heads of the queries (batch, length, heads · size) meet those of keys and values.

    Keys and values have the same three axes, or are by head already, (batch, heads, length, size), as are the cached ones.
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
        """The number of keys, cached ones included, int64 of shape [1]."""
        keys = self.op.size_of(self.key, 1 if self.key.need_rank() == 3 else 2)
        return keys if self.past_key is None else self.op.size_of(self.past_key, 2) + keys

    def mask(self, mask: Value | None, filtered: float) -> Value | None:
        """Return what a mask of int32 adds to the scores: 0, or `filtered` for keys that are not seen. Its axes are four.

        A mask is (batch, keys) or (batch, queries, keys); or (batch) or (3 · batch + 2), which begins with the number of keys
        that are seen; or (2 · batch), their ends and their starts.
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
                return None  # the kernel takes it for no mask
            seen = op.Unsqueeze(mask > 0, [1, 2] if rank == 2 else [1])
        given = op.Where(seen, op.constant(np.float32(0)), op.constant(np.float32(filtered)))
        return given.cast(self.query.need_dtype())

    def _by_lengths(self, mask: Value) -> Value:
        """Return which keys are seen, (batch, keys), by their number, or by their ends and starts."""
        op, given = self.op, (mask.shape or (None,))[0]
        batch = (self.query.shape or (None,))[0]
        places = op.iota(self.total)
        lengths = mask.cast(_T.INT64)
        if given is None or batch is None:
            one, other = (op.rw.scope.value_type(value.name).symbols for value in (mask, self.query))
            if one and other and one[0] and one[0] == other[0]:
                given = batch = 1
        if (
            given is not None and batch is not None and given == 3 * batch + 2
        ):  # behind them, where packed items start
            lengths, given = op.Slice(lengths, [0], [batch], [0]), batch
        if given is not None and given == batch:
            return places < op.Unsqueeze(lengths, [1])
        items = op.size_of(self.query, 0)
        ends = op.write("Slice", lengths, [0], items, [0])
        if (
            given is None or batch is None
        ):  # behind the ends of the keys are their starts, or something else, or nothing
            both = op.Equal(op.size_of(mask, 0), items * 2).cast(_T.INT64)
            lengths = op.Concat(lengths, ends, axis=0) * both
        elif given != 2 * batch:
            op.refuse("its mask has neither one nor two numbers for each item of the batch", code="no-equal")
        starts = op.write("Slice", lengths, items, items * 2, [0])
        return (places < op.Unsqueeze(ends, [1])) & ~(places < op.Unsqueeze(starts, [1]))

    def attend(self, mask: Value | None, bias: Value | None) -> tuple[Value, Value, Value, Value]:
        """Return the output (batch, length, heads · size), keys and values with the cached ones, and the masked scores."""
        # The sum of a mask and a bias is rounded where the mask has large numbers; the kernel adds one after the other.
        direct = self.op.version >= _DIRECT and (mask is None or bias is None)
        return self._direct(mask, bias) if direct else self._written_out(mask, bias)

    def in_buffer(
        self, past: Value, beams: Value | None, mask: Value | None, filtered: float, bias: Value | None
    ) -> tuple[Value, Value, Value, Value]:
        """Return what `attend` returns where the caches have room behind their first `past` rows, and the whole of them.

        `beams` (batch / beams, beams, rows) has the beam from which a single query takes each cached row.
        """
        op, new = self.op, [by_head(item, self.count) for item in (self.key, self.value)]
        assert self.past_key is not None
        assert self.past_value is not None
        past, steps = past.cast(_T.INT64).reshape(-1), op.size_of(self.query, 1)
        caches = (self.past_key, self.past_value)
        old = [op.write("Slice", cache, [0], past, [2]) for cache in caches]
        ends = [op.write("Slice", cache, past + steps, [_END], [2]) for cache in caches]
        seen = old if beams is None else self._of_beams(old, beams, past, bias)
        heads = replace(self, key=new[0], value=new[1], past_key=seen[0], past_value=seen[1])
        result, _, _, scores = heads.attend(heads.mask(mask, filtered), bias)
        stored = [op.Concat(*rows, axis=2) for rows in zip(old, new, ends, strict=True)]
        return result, stored[0], stored[1], scores

    def _of_beams(self, caches: list[Value], beams: Value, past: Value, bias: Value | None) -> list[Value]:
        """Return cached rows, (batch, heads, past, size), each from the item of the batch that its beam is."""
        op = self.op
        if bias is not None and (bias.shape or (None,))[0] != 1:
            op.refuse(
                "each beam has a bias of its own, of which the kernel takes another one", code="no-equal"
            )
        width, batch = op.size_of(beams, 1), op.size_of(self.query, 0)
        items = op.Unsqueeze(op.iota(batch), [1])
        table = op.Reshape(beams.cast(_T.INT64), op.Concat([-1], op.size_of(beams, 2), axis=0))
        source = op.write("Slice", table, [0], past, [1]) + items / width * width
        single = op.Equal(op.size_of(self.query, 1), [1])  # else the kernel takes the rows as they stand
        places = op.Unsqueeze(op.Where(single, source, items), [1, 3])
        return [op.GatherElements(cache, op.Expand(places, op.Shape(cache)), axis=0) for cache in caches]

    def _direct(self, mask: Value | None, bias: Value | None) -> tuple[Value, Value, Value, Value]:
        op, flat = self.op, self.key.need_rank() == 3
        query = self.query if flat else by_head(self.query, self.count)
        if mask is not None:
            mask = op.Expand(mask, op.Concat([1, 1], op.size_of(self.query, 1), self.total, axis=0))
        given: dict[str, Any] = {"is_causal": int(self.causal), "scale": float(self.scale) or None}
        given |= {"q_num_heads": self.count, "kv_num_heads": self.count} if flat else {}
        given |= {"qk_matmul_output_mode": 2} if op.is_read(3) else {}
        operands = (
            query,
            self.key,
            self.value,
            bias if mask is None else mask,
            self.past_key,
            self.past_value,
        )
        wanted = 4 if op.is_read(3) else 3
        found = op.several("Attention", wanted, *operands, **given)
        return found[0] if flat else joined(op, found[0]), found[1], found[2], found[-1]

    def _written_out(self, mask: Value | None, bias: Value | None) -> tuple[Value, Value, Value, Value]:
        op = self.op
        query = by_head(self.query, self.count)
        key, value = (
            by_head(item, self.count) if item.need_rank() == 3 else item for item in (self.key, self.value)
        )
        key = key if self.past_key is None else op.Concat(self.past_key, key, axis=2)
        value = value if self.past_value is None else op.Concat(self.past_value, value, axis=2)
        scores = (
            query @ op.Transpose(key, perm=[0, 1, 3, 2]) * scale_of(op, self.query, self.count, self.scale)
        )
        for added in (bias, mask):
            scores = scores if added is None else scores + added
        if self.causal:
            scores = op.Where(self._later(query, key), op.constant(_LOWEST, scores), scores)
        result = op.Softmax(scores, axis=-1) @ value
        return joined(op, result), key, value, scores

    def _later(self, query: Value, key: Value) -> Value:
        """Return which keys come after a query, (queries, keys), where the last query has the place of the last key."""
        op = self.op
        total, length = op.size_of(key, 2), op.size_of(query, 2)
        rows = op.iota(length) + (total - length)
        return op.iota(total) > op.Unsqueeze(rows, [1])


@formula("com.microsoft::MultiHeadAttention", since=1, form=14, direct=23, exactness=EQUIVALENT)
def multi_head_attention(
    op: Op,
    query: Value,
    key: Value | None,
    value: Value | None,
    bias: Value | None,
    key_padding_mask: Value | None,
    attention_bias: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    past_sequence_length: Value | None,
    cache_indirection: Value | None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Result:
    """It is Attention of the standard from opset 23 on, and below what that consists of.

    What changes: the bias is added to queries, keys and values first. The mask becomes numbers that are added to the scores, with
    `mask_filter_value`, which is no infinity, for keys that are not seen. Packed inputs of five axes are taken apart. Below opset
    23: MatMul, Mul, Add, Where, Softmax, MatMul between Reshapes and Transposes; positions are counted at run time. Of a cache in
    a buffer, Slices take the rows up to `past_sequence_length`, and a Concat puts new ones behind; in a beam search, a
    GatherElements takes each row from its beam.

    Why equal: onnxruntime/contrib_ops/cpu/bert/multihead_attention.cc and attention_cpu_base.h: 2e-7 of the largest number seen.
    The fourth output has the scores before the Softmax, as the kernel has it and the text does not.
    """
    query, key, value = _unpacked(op, query, key, value)
    if key is None or value is None:
        op.refuse("it has no keys or no values", code="invalid-node")
    if bias is not None:
        query, key, value = biased(op, query, key, value, bias)
    heads = Heads(op, num_heads, query, key, value, scale, past_key, past_value, bool(unidirectional))
    if past_sequence_length is not None and past_key is not None:
        masked = (key_padding_mask, mask_filter_value, attention_bias)
        return heads.in_buffer(past_sequence_length, cache_indirection, *masked)
    return heads.attend(heads.mask(key_padding_mask, mask_filter_value), attention_bias)


def _unpacked(
    op: Op, query: Value, key: Value | None, value: Value | None
) -> tuple[Value, Value | None, Value | None]:
    """Return queries, keys and values apart, where the fourth of five axes packs all three, or the last two of them."""
    if query.need_rank() == 5:
        query, key, value = (_part(op, query, place) for place in range(3))
    elif key is not None and key.need_rank() == 5:
        key, value = _part(op, key, 0), _part(op, key, 1)
    return query, key, value


def _part(op: Op, packed: Value, place: int) -> Value:
    """Return one of the values in (batch, length, heads, values, size), with the heads side by side."""
    return op.Squeeze(op.Slice(packed, [place], [place + 1], [3]), [3]).reshape(0, 0, -1)


def biased(op: Op, query: Value, key: Value, value: Value, bias: Value) -> tuple[Value, Value, Value]:
    """Add the parts of a bias to queries, keys and values; to the queries alone where the keys are a cache by head."""
    found, place = [], 0
    size = query.need_size(-1)
    for item, length in ((query, size), (key, size), (value, None)):
        if item.need_rank() == 4:
            found.append(item)
            continue
        end = _END if length is None else place + length
        found.append(item + op.Slice(bias, [place], [end], [0]))
        place = end
    return found[0], found[1], found[2]


@formula("com.microsoft::Attention", since=1, form=14, direct=23, exactness=EQUIVALENT)
def attention(
    op: Op,
    x: Value,
    weights: Value,
    bias: Value | None,
    mask_index: Value | None,
    past: Value | None,
    attention_bias: Value | None,
    past_sequence_length: Value | None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: list[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Result:
    """It is a product with the weights of queries, keys and values, and Attention of the standard, or what that consists of.

    What changes: the product with all weights is split into queries, keys and values. The cache, keys and values in one tensor,
    is taken apart, and joined for the second output. The rest is that of `com.microsoft.multiheadattention-written-out`.

    Why equal: onnxruntime/contrib_ops/cpu/bert/attention.cc and attention_cpu_base.h: 2e-7 of the largest number seen.
    """
    if do_rotary or past_present_share_buffer or past_sequence_length is not None:
        op.refuse("it rotates, or its cache is a buffer of a fixed length", code="no-equal")
    product = x @ weights
    product = product if bias is None else product + bias
    how = (num_heads, scale, mask_filter_value, bool(unidirectional))
    return _attended(op, product, qkv_hidden_sizes, mask_index, past, attention_bias, *how)


@formula("com.microsoft::QAttention", since=1, form=14, direct=23, exactness=EQUIVALENT)
def q_attention(
    op: Op,
    x: Value,
    weights: Value,
    bias: Value,
    x_scale: Value,
    weights_scale: Value,
    mask_index: Value | None,
    x_zero_point: Value | None,
    weights_zero_point: Value | None,
    past: Value | None,
    *,
    num_heads: int,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
    unidirectional: int = 0,
) -> Result:
    """It is Attention, whose product with the weights is one of integers.

    What changes: MatMulInteger, Cast, Mul and Add are the product. The rest is that of `com.microsoft.attention-written-out`.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/attention_quant.cc.
    """
    from .contrib_quantized import scalar

    if do_rotary or past_present_share_buffer:
        op.refuse("it rotates, or its cache is a buffer of a fixed length", code="no-equal")
    zeros = [None if item is None else scalar(op, item) for item in (x_zero_point, weights_zero_point)]
    product = op.MatMulInteger(x, weights, *zeros).cast(_T.FLOAT) * (x_scale * weights_scale) + bias
    how = (num_heads, scale, mask_filter_value, bool(unidirectional))
    return _attended(op, product, None, mask_index, past, None, *how)


def _attended(
    op: Op,
    product: Value,
    sizes: list[int] | None,
    mask_index: Value | None,
    past: Value | None,
    attention_bias: Value | None,
    num_heads: int,
    scale: float,
    filtered: float,
    causal: bool,
) -> Result:
    thirds = 3 if sizes is None and op.version >= 18 else None
    query, key, value = op.several("Split", 3, product, sizes, axis=-1, num_outputs=thirds)
    cached: list[Value | None] = [None, None]
    if past is not None:
        cached = [op.Squeeze(op.Slice(past, [place], [place + 1], [0]), [0]) for place in (0, 1)]
    heads = Heads(op, num_heads, query, key, value, scale, cached[0], cached[1], causal)
    result, keys, values, _ = heads.attend(heads.mask(mask_index, filtered), attention_bias)
    present = op.Concat(op.Unsqueeze(keys, [0]), op.Unsqueeze(values, [0]), axis=0) if op.is_read(1) else None
    return result, present


@formula("com.microsoft::RotaryEmbedding", since=1, form=23, exactness=EQUIVALENT)
def rotary_embedding(
    op: Op,
    x: Value,
    position_ids: Value,
    cos_cache: Value,
    sin_cache: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    """It is RotaryEmbedding of the standard, whose inputs have another order.

    What changes: where one position is given, it is that of the first element, from which they are counted. `num_heads`, if it is
    left out, follows from the widths of data and caches.

    Why equal: onnxruntime/contrib_ops/cpu/bert/rotary_embedding.cc. The kernel does not use `scale`.
    """
    if is_packed_batching or scale != 1:
        op.refuse("it packs items of several lengths, or has a scale", code="no-equal")
    rank = x.need_rank()
    if position_ids.need_rank() < 2:
        steps = op.size_of(x, 1 if rank == 3 else 2)
        shape = op.Concat(op.size_of(x, 0), steps, axis=0)
        position_ids = op.Expand(op.Unsqueeze(op.iota(steps), [0]) + position_ids, shape)
    width, half = (x.shape or (None,))[-1], (cos_cache.shape or (None,))[-1]
    if rank == 3 and not num_heads and width is not None and half is not None:
        num_heads = width // (2 * half)
    by_heads = rank == 4 or not num_heads
    if rank == 3 and by_heads:
        x = op.Transpose(x.reshape(0, 0, -1, 2 * cos_cache.need_size(-1)), perm=[0, 2, 1, 3])
    found = op.RotaryEmbedding(
        x, cos_cache, sin_cache, position_ids, interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim,
        num_heads=None if by_heads else num_heads,
    )  # fmt: skip
    return joined(op, found) if rank == 3 and by_heads else found


@formula("com.microsoft::MRotaryEmbedding", since=1, form=23, exactness=EQUIVALENT)
def m_rotary_embedding(
    op: Op,
    x: Value,
    position_ids: Value,
    cos_cache: Value,
    sin_cache: Value,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: list[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Value:
    """It is RotaryEmbedding, each of whose columns has one of three positions: a time, a row or a column.

    What changes: a Gather for each kind of position; Where takes the columns of each from them.

    Why equal: onnxruntime/contrib_ops/cpu/bert/mrotary_embedding.cc.
    """
    if is_packed_batching:
        op.refuse("it packs items of several lengths", code="no-equal")
    half = cos_cache.need_size(1)
    kind = np.repeat(range(3), mrope_section)
    if mrope_layout:  # rows and columns have every third column each
        kind = np.arange(half) % 3
        kind[np.arange(half) >= 3 * np.array(mrope_section)[kind]] = 0
    parts = [op.Gather(position_ids, place, axis=0) for place in range(3)]
    tables = []
    for cache in (cos_cache, sin_cache):
        time, row, column = (op.Gather(cache, part, axis=0) for part in parts)
        table = op.Where(kind == 1, row, op.Where(kind == 2, column, time))
        tables.append(table if scale == 1 else table * scale)
    given = {"interleaved": interleaved, "rotary_embedding_dim": rotary_embedding_dim}
    return op.RotaryEmbedding(x, *tables, None, num_heads=num_heads or None, **given)
