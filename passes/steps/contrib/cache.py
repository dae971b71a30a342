"""ONNX Runtime's attentions (com.microsoft) whose cache has a length for each item, or is a buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Result, TensorProto, Value, formula

from ..attention_heads import LOWEST, Heads, by_head, joined, repeated, scale_of
from .attention import biased

_T = TensorProto


@dataclass(frozen=True)
class _Lengths:
    """How many keys each item of a batch has: `past` of them in the cache, `total` with the new ones. Both are (batch, 1)."""

    op: Op
    steps: Value
    """The number of new keys, int64 of shape [1]."""
    past: Value
    total: Value
    longest: Value
    """The total of the longest item, int64 of shape [1]."""

    def positions(self, given: Value | None) -> Value:
        """Return the positions of queries and new keys, (batch, steps): `given`, or else those that follow the cache.

        In a first prompt the kernel counts from the first given position.
        """
        op = self.op
        steps = op.Unsqueeze(op.iota(self.steps), [0])
        if given is None:
            return self.past + steps
        first = op.Slice(given, [0, 0], [1, 1], [0, 1]) + steps
        return op.Where(op.Equal(self.longest, self.steps), first, given)

    def joined(self, cache: Value | None, new: Value) -> Value:
        """Return the cached rows of each item, then its new rows, then zeros: (batch, heads, rows, size)."""
        if cache is None:
            return new
        op = self.op
        positions = op.iota(op.Max(self.longest, op.size_of(cache, 2)))
        both = op.Concat(cache, new, axis=2)
        shifted = positions + (op.size_of(cache, 2) - self.past)
        end = self.past + self.steps
        index = op.Where(positions < self.past, positions, shifted)
        index = op.Where(positions < end, index, op.constant(0))
        shape = op.Concat([1], op.size_of(new, 1), [1], op.size_of(new, 3), axis=0)
        rows = op.GatherElements(both, op.Expand(op.Unsqueeze(index, [1, 3]), shape), axis=2)
        return op.Where(op.Unsqueeze(positions < end, [1, 3]), rows, op.constant(0, new))

    def seen(self, keys: Value, *, causal: bool, window: int) -> Value:
        """Return a mask of the keys that each query sees, (batch, 1, queries, keys)."""
        op = self.op
        if window >= 0:
            op.note(f"local_window_size is read as {window} keys, as from ONNX Runtime 1.25 on", EQUIVALENT)
        positions = op.iota(op.size_of(keys, 2))
        own = self.past + (op.iota(self.steps) + 1) if causal else self.total
        end = op.Min(own, self.total) if causal else own
        visible = positions < op.Unsqueeze(end, [1, 3])
        return visible if window < 0 else visible & ~(positions < op.Unsqueeze(own, [1, 3]) - window)


@formula("com.microsoft::GroupQueryAttention", since=1, form=23, exactness=EQUIVALENT)
def group_query_attention(
    op: Op,
    query: Value,
    key: Value | None,
    value: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    seqlens_k: Value,
    total_sequence_length: Value,
    cos_cache: Value | None,
    sin_cache: Value | None,
    position_ids: Value | None,
    attention_bias: Value | None,
    head_sink: Value | None,
    *,
    num_heads: int,
    kv_num_heads: int,
    causal: int = 1,
    do_rotary: int = 0,
    local_window_size: int = -1,
    qk_output: int = 0,
    rotary_interleaved: int = 0,
    scale: float = 0.0,
    smooth_softmax: int = 0,
    softcap: float = 0.0,
    kv_cache_bit_width: int = 0,
    k_quant_type: str = "NONE",
    v_quant_type: str = "NONE",
    sliding_window_cache: int = 0,
    q_norm_epsilon: float = 0.0,
    k_norm_epsilon: float = 0.0,
    qk_norm_epsilon: float = 0.0,
) -> Result:
    """Groups of queries share the keys of a cache. Each item of the batch has its own cache length.

    What changes: packed inputs are split. RotaryEmbedding rotates queries and new keys at the positions that follow the
    cache. A GatherElements puts the new keys and values of each item behind its cached ones. Keys and values are repeated for
    their group. The scores are scaled and capped, and a Where masks them. Softmax and the second product follow. A sink is
    one more column of the scores, and a Slice removes it after the Softmax.

    Why equal: the new nodes compute the same as onnxruntime/contrib_ops/cpu/bert/group_query_attention.cc and
    gqa_attention_base.h. Outputs differ by at most 2e-7 of the largest number seen, and the cache is equal bit for bit. If a
    host binds one buffer for both caches, the kernel does not change the rows behind the keys. The result has 0 there.

    Limits: onnx-migrate refuses quantised caches, norms of queries and keys, and the output of scores. A `local_window_size`
    of w means w keys, as in ONNX Runtime 1.25 and later. Up to 1.23 it meant w + 1 keys.
    """
    if sliding_window_cache or op.is_read(3) or {k_quant_type, v_quant_type} != {"NONE"}:
        op.refuse("its cache slides or is quantised, or its scores are read", code="no-equal")
    size = query.need_size(-1) // (num_heads + 2 * kv_num_heads if key is None else num_heads)
    if key is None or value is None:
        sizes = [count * size for count in (num_heads, kv_num_heads, kv_num_heads)]
        query, key, value = op.several("Split", 3, query, sizes, axis=-1)
    lengths = _lengths(op, query, seqlens_k, total_sequence_length, cached=past_key is not None)
    if do_rotary and cos_cache is not None and sin_cache is not None:
        part, positions = 2 * cos_cache.need_size(-1), lengths.positions(position_ids)
        how = {"interleaved": rotary_interleaved, "rotary_embedding_dim": 0 if part == size else part}
        query = op.RotaryEmbedding(query, cos_cache, sin_cache, positions, num_heads=num_heads, **how)
        key = op.RotaryEmbedding(key, cos_cache, sin_cache, positions, num_heads=kv_num_heads, **how)
    keys = lengths.joined(past_key, by_head(key, kv_num_heads))
    values = lengths.joined(past_value, by_head(value, kv_num_heads))
    heads = by_head(query, num_heads).wide()
    every = [repeated(cached.wide(), 1, kv_num_heads, num_heads) for cached in (keys, values)]
    scores = heads @ op.Transpose(every[0], perm=[0, 1, 3, 2]) * scale_of(op, heads, num_heads, scale)
    scores = op.Tanh(scores / softcap) * softcap if softcap else scores
    scores = scores if attention_bias is None else scores + attention_bias.wide()
    seen = lengths.seen(keys, causal=bool(causal), window=local_window_size)
    scores = op.Where(seen, scores, op.constant(np.float32(LOWEST)))
    weights = _softmax(op, scores, head_sink, num_heads, smooth=bool(smooth_softmax))
    return joined(op, (weights @ every[1]).cast(query.need_dtype())), keys, values


def _lengths(op: Op, query: Value, seqlens: Value, longest: Value, *, cached: bool) -> _Lengths:
    """Return the lengths of the items. `seqlens` counts all keys of an item except one."""
    steps = op.size_of(query, 1)
    total = op.Unsqueeze(seqlens.cast(_T.INT64).reshape(-1), [1]) + 1
    # Without a cache all keys are new, and the product with 0 has a shape that only the run knows.
    past = op.Max(total - steps, op.constant(0)) if cached else total * 0
    return _Lengths(op, steps, past, total, longest.cast(_T.INT64).reshape(-1))


def _softmax(op: Op, scores: Value, sink: Value | None, heads: int, *, smooth: bool) -> Value:
    """Return the weights of the keys. A sink makes their sum less than 1: it adds its own exponential, or that of 0."""
    if sink is None and not smooth:
        return op.Softmax(scores, axis=-1)
    column = op.constant(np.float32(0)) if sink is None else sink.wide().reshape(1, heads, 1, 1)
    rows = op.Concat(op.size_of(scores, 0), [heads], op.size_of(scores, 2), [1], axis=0)
    together = op.Softmax(op.Concat(scores, op.Expand(column, rows), axis=3), axis=-1)
    return op.Slice(together, [0], [-1], [3])


@formula("com.microsoft::DecoderMaskedMultiHeadAttention", since=1, form=14, exactness=EQUIVALENT)
def decoder_masked_multi_head_attention(
    op: Op,
    query: Value,
    key: Value | None,
    value: Value | None,
    mask_index: Value | None,
    attention_bias: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    past_sequence_length: Value | None,
    beam_width: Value | None,
    cache_indirection: Value | None,
    bias: Value | None,
    *,
    num_heads: int,
    mask_filter_value: float = -10000.0,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float = 0.0,
) -> Result:
    """One query meets the keys of a buffer, in which its own key and value are written behind the cached ones.

    What changes: the node becomes those that `com.microsoft.multiheadattention-written-out` describes for a cache in a
    buffer. Keys by head without a cache are those of an encoder.

    Why equal: onnxruntime/contrib_ops/cpu/bert/decoder_masked_multihead_attention.cc computes the same. The largest
    difference seen is 2e-7 of the largest number.

    Limits: onnx-migrate refuses caches that do not share one buffer.
    """
    if key is None or value is None:
        op.refuse("it has packed inputs", code="no-equal")
    if past_key is None and bias is not None:
        op.refuse("it has a bias and no cache", code="no-equal")
    if bias is not None:
        query, key, value = biased(op, query, key, value, bias)
    heads = Heads(op, num_heads, query, key, value, scale, past_key, past_value)
    if past_key is None:
        return heads.attend(heads.mask(mask_index, mask_filter_value), attention_bias)
    if past_sequence_length is None or not past_present_share_buffer:
        op.refuse("its cache is no buffer of a fixed length", code="no-equal")
    masked = (mask_index, mask_filter_value, attention_bias)
    return heads.in_buffer(past_sequence_length, cache_indirection, *masked)
