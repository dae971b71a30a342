"""ONNX Runtime's attentions (com.microsoft): Attention, QAttention, MultiHeadAttention, and the rotary embeddings."""

from __future__ import annotations

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Result, TensorProto, Value, formula

from ..attention_heads import END, Heads, joined

__all__ = ["biased"]

_T = TensorProto


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
    """MultiHeadAttention becomes the standard's Attention from opset 23 on, and older operators below.

    What changes: the bias is added to queries, keys and values first. Packed inputs of five axes are split. The mask becomes
    numbers that are added to the scores. Keys that a query may not see get `mask_filter_value`, which is finite. Below opset
    23 the node becomes MatMul, Mul, Add, Where, Softmax and MatMul between Reshapes and Transposes. Positions are counted at
    run time. If the cache is a buffer, Slices read its rows up to `past_sequence_length`, and a Concat appends new rows. In a
    beam search, a GatherElements reads each row from its beam.

    Why equal: the new nodes compute the same as onnxruntime/contrib_ops/cpu/bert/multihead_attention.cc and
    attention_cpu_base.h. The largest difference seen is 2e-7 of the largest number. The fourth output holds the scores before
    the Softmax, as in the kernel. The operator's text says otherwise.
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
    """Return queries, keys and values. The fourth of five axes holds all three, or only keys and values."""
    if query.need_rank() == 5:
        query, key, value = (_part(op, query, index) for index in range(3))
    elif key is not None and key.need_rank() == 5:
        key, value = _part(op, key, 0), _part(op, key, 1)
    return query, key, value


def _part(op: Op, packed: Value, place: int) -> Value:
    """Return one of the values in (batch, length, heads, values, size). The heads are side by side in the result."""
    return op.Squeeze(op.Slice(packed, [place], [place + 1], [3]), [3]).reshape(0, 0, -1)


def biased(op: Op, query: Value, key: Value, value: Value, bias: Value) -> tuple[Value, Value, Value]:
    """Add the parts of a bias to queries, keys and values. Inputs of four axes are a cache by head and stay unchanged."""
    biased_parts, start = [], 0
    size = query.need_size(-1)
    for part, length in ((query, size), (key, size), (value, None)):
        if part.need_rank() == 4:
            biased_parts.append(part)
            continue
        end = END if length is None else start + length
        biased_parts.append(part + op.Slice(bias, [start], [end], [0]))
        start = end
    return biased_parts[0], biased_parts[1], biased_parts[2]


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
    """Attention becomes a product with the weights of queries, keys and values, and then Attention or older operators.

    What changes: the product with all weights is split into queries, keys and values. The cache holds keys and values in one
    tensor. It is split, and both are joined again for the second output. All other nodes are those of
    `com.microsoft.multiheadattention-written-out`.

    Why equal: the new nodes compute the same as onnxruntime/contrib_ops/cpu/bert/attention.cc and attention_cpu_base.h. The
    largest difference seen is 2e-7 of the largest number.
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
    """QAttention becomes the same nodes as Attention, with an integer product with the weights.

    What changes: the product becomes MatMulInteger, Cast, Mul and Add. All other nodes are those of
    `com.microsoft.attention-written-out`.

    Why equal: the new nodes compute the same as onnxruntime/contrib_ops/cpu/quantization/attention_quant.cc.
    """
    from .quantized import scalars

    if do_rotary or past_present_share_buffer:
        op.refuse("it rotates, or its cache is a buffer of a fixed length", code="no-equal")
    product = op.MatMulInteger(x, weights, *scalars(op, x_zero_point, weights_zero_point))
    product = product.cast(_T.FLOAT) * (x_scale * weights_scale) + bias
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
    # Since opset 18, a Split without the lengths of its parts must state how many there are.
    thirds = 3 if sizes is None and op.version >= 18 else None
    query, key, value = op.several("Split", 3, product, sizes, axis=-1, num_outputs=thirds)
    cached: list[Value | None] = [None, None]
    if past is not None:
        cached = [op.Squeeze(op.Slice(past, [index], [index + 1], [0]), [0]) for index in (0, 1)]
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
    """RotaryEmbedding becomes the standard's RotaryEmbedding, which orders its inputs differently.

    What changes: a single position is that of the first element, and the other positions are counted from it. An omitted
    `num_heads` follows from the widths of data and caches.

    Why equal: onnxruntime/contrib_ops/cpu/bert/rotary_embedding.cc computes the same. The kernel does not use `scale`.
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
    rotated = op.RotaryEmbedding(
        x, cos_cache, sin_cache, position_ids, interleaved=interleaved, rotary_embedding_dim=rotary_embedding_dim,
        num_heads=None if by_heads else num_heads,
    )  # fmt: skip
    return joined(op, rotated) if rank == 3 and by_heads else rotated


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
    """MRotaryEmbedding becomes RotaryEmbedding with three kinds of positions: each column uses a time, a row or a column.

    What changes: a Gather reads the caches for each kind of position. The operator Where selects the kind for each column.

    Why equal: onnxruntime/contrib_ops/cpu/bert/mrotary_embedding.cc computes the same.
    """
    if is_packed_batching:
        op.refuse("it packs items of several lengths", code="no-equal")
    half = cos_cache.need_size(1)
    kind = np.repeat(range(3), mrope_section)
    if mrope_layout:  # every third number belongs to the row, every third to the column
        kind = np.arange(half) % 3
        kind[np.arange(half) >= 3 * np.array(mrope_section)[kind]] = 0
    parts = [op.Gather(position_ids, index, axis=0) for index in range(3)]
    tables = []
    for cache in (cos_cache, sin_cache):
        time, row, column = (op.Gather(cache, part, axis=0) for part in parts)
        table = op.Where(kind == 1, row, op.Where(kind == 2, column, time))
        tables.append(table if scale == 1 else table * scale)
    settings = {"interleaved": interleaved, "rotary_embedding_dim": rotary_embedding_dim}
    return op.RotaryEmbedding(x, *tables, None, num_heads=num_heads or None, **settings)
