"""ONNX Runtime's attentions (com.microsoft) with a cache of several lengths, or in a buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Result, TensorProto, Value, formula

from ..attention_heads import LOWEST, Heads, by_head, joined, repeated, scale_of
from .attention import biased

_T = TensorProto


@dataclass(frozen=True)
class _Lengths:
    """Where the keys of a batch stand: each item has `past` keys in the cache, and `total` with the new ones, all (batch, 1)."""

    op: Op
    steps: Value
    """The number of new keys, int64 of shape [1]."""
    past: Value
    total: Value
    longest: Value
    """The total of the longest item, int64 of shape [1]."""

    def positions(self, given: Value | None) -> Value:
        """Return the positions of queries and new keys, (batch, steps): those given, or behind the cache.

        In a first prompt the kernel counts from the first position that is given.
        """
        op = self.op
        steps = op.Unsqueeze(op.iota(self.steps), [0])
        if given is None:
            return self.past + steps
        first = op.Slice(given, [0, 0], [1, 1], [0, 1]) + steps
        return op.Where(op.Equal(self.longest, self.steps), first, given)

    def joined(self, cache: Value | None, new: Value) -> Value:
        """Return new rows behind those of each item in the cache, (batch, heads, rows, size), with 0 behind all."""
        if cache is None:
            return new
        op = self.op
        places = op.iota(op.Max(self.longest, op.size_of(cache, 2)))
        both = op.Concat(cache, new, axis=2)
        shifted = places + (op.size_of(cache, 2) - self.past)
        end = self.past + self.steps
        index = op.Where(places < self.past, places, shifted)
        index = op.Where(places < end, index, op.constant(0))
        shape = op.Concat([1], op.size_of(new, 1), [1], op.size_of(new, 3), axis=0)
        rows = op.GatherElements(both, op.Expand(op.Unsqueeze(index, [1, 3]), shape), axis=2)
        return op.Where(op.Unsqueeze(places < end, [1, 3]), rows, op.constant(0, new))

    def seen(self, keys: Value, *, causal: bool, window: int) -> Value:
        """Return which keys a query sees, (batch, 1, queries, keys)."""
        op = self.op
        if window >= 0:
            op.note(f"local_window_size is read as {window} keys, as from ONNX Runtime 1.25 on", EQUIVALENT)
        places = op.iota(op.size_of(keys, 2))
        own = self.past + (op.iota(self.steps) + 1) if causal else self.total
        end = op.Min(own, self.total) if causal else own
        found = places < op.Unsqueeze(end, [1, 3])
        return found if window < 0 else found & ~(places < op.Unsqueeze(own, [1, 3]) - window)


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
    """Queries in groups meet the keys of a cache, in which each item of the batch has a length of its own.

    What changes: packed inputs are split; queries and new keys are rotated by RotaryEmbedding at their places behind the cache; a
    GatherElements puts new keys and values behind the cached ones of each item. Keys and values are repeated for their group, and
    the scores are scaled, capped, and masked by a Where, before Softmax and the second product. A sink is one more column of the
    scores, which is cut off.

    Why equal: onnxruntime/contrib_ops/cpu/bert/group_query_attention.cc and gqa_attention_base.h: outputs 2e-7 of the largest
    number seen, the cache bit for bit. Where a host binds one buffer for both caches, the kernel leaves what lies behind the
    keys, and the result has 0 there.

    Limits: quantised caches, norms of queries and keys, and the output of scores are refused. A `local_window_size` of w is w
    keys, as from ONNX Runtime 1.25 on; up to 1.23 it was w + 1.
    """
    if sliding_window_cache or op.is_read(3) or {k_quant_type, v_quant_type} != {"NONE"}:
        op.refuse("its cache slides or is quantised, or its scores are read", code="no-equal")
    size = query.need_size(-1) // (num_heads + 2 * kv_num_heads if key is None else num_heads)
    if key is None or value is None:
        sizes = [count * size for count in (num_heads, kv_num_heads, kv_num_heads)]
        query, key, value = op.several("Split", 3, query, sizes, axis=-1)
    lengths = _lengths(op, query, seqlens_k, total_sequence_length, cached=past_key is not None)
    if do_rotary and cos_cache is not None and sin_cache is not None:
        part, places = 2 * cos_cache.need_size(-1), lengths.positions(position_ids)
        how = {"interleaved": rotary_interleaved, "rotary_embedding_dim": 0 if part == size else part}
        query = op.RotaryEmbedding(query, cos_cache, sin_cache, places, num_heads=num_heads, **how)
        key = op.RotaryEmbedding(key, cos_cache, sin_cache, places, num_heads=kv_num_heads, **how)
    keys = lengths.joined(past_key, by_head(key, kv_num_heads))
    values = lengths.joined(past_value, by_head(value, kv_num_heads))
    heads = by_head(query, num_heads).wide()
    every = [repeated(item.wide(), 1, kv_num_heads, num_heads) for item in (keys, values)]
    scores = heads @ op.Transpose(every[0], perm=[0, 1, 3, 2]) * scale_of(op, heads, num_heads, scale)
    scores = op.Tanh(scores / softcap) * softcap if softcap else scores
    scores = scores if attention_bias is None else scores + attention_bias.wide()
    seen = lengths.seen(keys, causal=bool(causal), window=local_window_size)
    scores = op.Where(seen, scores, op.constant(np.float32(LOWEST)))
    weights = _softmax(op, scores, head_sink, num_heads, smooth=bool(smooth_softmax))
    return joined(op, (weights @ every[1]).cast(query.need_dtype())), keys, values


def _lengths(op: Op, query: Value, seqlens: Value, longest: Value, *, cached: bool) -> _Lengths:
    """Return the lengths of the items, of which `seqlens` has all keys but one."""
    steps = op.size_of(query, 1)
    total = op.Unsqueeze(seqlens.cast(_T.INT64).reshape(-1), [1]) + 1
    past = op.Max(total - steps, op.constant(0)) if cached else total * 0
    return _Lengths(op, steps, past, total, longest.cast(_T.INT64).reshape(-1))


def _softmax(op: Op, scores: Value, sink: Value | None, heads: int, *, smooth: bool) -> Value:
    """Return the weights of the keys, whose sum a sink makes less than 1: its own exponential, or that of 0."""
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
    """One query meets the keys of a buffer, into which its own key and value are written behind the cached ones.

    What changes: what `com.microsoft.multiheadattention-written-out` says of a cache in a buffer. Keys by head without a cache
    are those of an encoder.

    Why equal: onnxruntime/contrib_ops/cpu/bert/decoder_masked_multihead_attention.cc: 2e-7 of the largest number seen.

    Limits: caches that are no shared buffer are refused.
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
