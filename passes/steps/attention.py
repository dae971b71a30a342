"""Attention and RotaryEmbedding, replaced by older operators below the opsets that introduced them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Result, TensorProto, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, compatible, lowering
from onnx_migrate.rewrite.bounded_arrays import bounded

from .attention_heads import END, joined
from .attention_mask import Mask

compatible(
    "Attention",
    24,
    reason="the optional input nonpad_kv_seqlen was added, and attn_mask may be shorter than the keys",
)
compatible(
    "Attention",
    25,
    reason="left_window_size and right_window_size were added; their default -1 means no window",
)


@lowering("Attention", leaves=25, types=LostTypes.OWN)
def attention_25_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A node without a window only loses two attributes. A node with one is replaced by older operators.

    What changes: `left_window_size` and `right_window_size` of -1 are dropped. A node with a window becomes the operators
    that `attention-23-down` lists, and the window becomes part of the mask.

    Why equal: -1 means no window. The standard's text defines the window by positions in the whole cache, and the mask counts
    the same positions.

    Limits: nodes with a window have the limits of `attention-23-down`.
    """
    windows = [rw.get(name, -1) for name in ("left_window_size", "right_window_size")]
    if max(windows) >= 0:
        _write_out(rw)
    else:
        rw.drop("left_window_size", "right_window_size")


@lowering("Attention", leaves=24, types=LostTypes.OWN)
def attention_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A mask that may be shorter than the keys is padded. A node with `nonpad_kv_seqlen` is replaced by older operators.

    What changes: a mask gets a Pad with -inf or False, unless its length is known to be that of the keys. The amount is
    computed at run time if the lengths are not fixed. A node with `nonpad_kv_seqlen` becomes the operators that
    `attention-23-down` lists.

    Why equal: the standard's text of version 24 gives a shorter mask this meaning.

    Limits: nodes with `nonpad_kv_seqlen` have the limits of `attention-23-down`.
    """
    if rw.input(6):
        _write_out(rw)
        return
    op = Op(rw)
    query, key, _, mask, past, *_ = _inputs(op)
    if mask is not None:
        padded = Mask(op, query, key, 1 if _is_flat(op, query) else 2, past).padded(mask)
        if padded is not mask:
            node.input[3] = padded.name
            rw.note("the mask is padded to the length of the keys")


@lowering("Attention", leaves=23, exactness=EQUIVALENT, types=LostTypes.OWN)
def attention_23_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Attention begins with opset 23, so MatMul, a mask, Softmax and MatMul compute it.

    What changes: Q and K are each multiplied by the root of the scale, and then by each other. The scores are capped and
    masked, and go through a Softmax. The result is multiplied by V. Inputs of three axes are reshaped to four, and the output
    is reshaped back. If several heads of Q share a head of K and V, a Gather repeats that head.

    Why equal: the new nodes follow the standard's text and function body. Shape computations in them are evaluated in advance
    where the shapes are known. Rows in which every key is masked give zeros, as the text says. The results differ from ONNX
    Runtime's kernel by at most 3e-7 of the largest number, as measured.

    Limits: element types must be known, and the rank of Q if the node gives numbers of heads. With mode 2, `qk_matmul_output`
    holds -inf where a boolean or causal mask hides a key, as the text says. ONNX Runtime's kernel returns the lowest finite
    number there.
    """
    _write_out(rw)


def _write_out(rw: LoweringRewriter) -> None:
    rw.exactness = EQUIVALENT
    op = Op(rw)
    op.end(_written_out(op))


def _written_out(op: Op) -> Result:
    """Return the outputs of an Attention of any version. Attributes that a version lacks have their default."""
    get = op.rw.get
    query, key, value, _, past_key, past_value = _inputs(op)
    dtype = query.need_dtype()
    flat = _is_flat(op, query)
    if flat:
        heads, kv_heads = get("q_num_heads", 0), get("kv_num_heads", 0)
        query, key, value = _by_head(query, heads), _by_head(key, kv_heads), _by_head(value, kv_heads)
    if past_key is not None:
        key = op.Concat(past_key, key, axis=2)
    if past_value is not None:
        value = op.Concat(past_value, value, axis=2)
    present = (key, value)
    mask = Mask(op, query, key)
    bias = mask.bias(dtype)  # before the heads are repeated, as their lengths are the same
    key, value = _repeated(op, query, key), _repeated(op, query, value).cast(dtype)
    scale = _root_of_scale(op, query, dtype)
    transposed = op.Transpose(key, perm=[0, 1, 3, 2])
    scores = (query * scale) @ (transposed * scale)
    stages = [scores]
    cap = get("softcap", 0.0)
    if cap:
        limit = op.constant(np.array(cap, helper.tensor_dtype_to_np_dtype(dtype)))
        scores = op.Tanh(scores / limit) * limit
    stages.append(scores)
    if bias is not None:
        scores = scores + bias
    stages.append(scores)
    precision = get("softmax_precision", 0) or dtype
    weights = op.Softmax(scores.cast(precision), axis=-1).cast(dtype)
    hidden = mask.hidden_rows(bias, dtype)
    if hidden is not None:
        # A Softmax over minus infinity alone is NaN, and the standard gives zeros for such a row.
        weights = op.Where(hidden, op.constant(np.array(0, helper.tensor_dtype_to_np_dtype(dtype))), weights)
    stages.append(weights)
    mode = get("qk_matmul_output_mode", 0)
    if mode == 2 and bias is not None and op.is_read(3):
        op.note(
            "qk_matmul_output holds -inf for keys that are hidden, where runtimes may have the lowest number",
            Exactness.ASSUMED,
        )
    result = weights @ value
    return joined(op, result) if flat else result, *present, stages[mode]


def _inputs(op: Op) -> tuple[Value, Value, Value, Value | None, Value | None, Value | None]:
    """Return Q, K and V, the mask, and the cached K and V."""
    query, key, value = (op.input(index) for index in range(3))
    assert query is not None
    assert key is not None
    assert value is not None
    return query, key, value, op.input(3), op.input(4), op.input(5)


def _is_flat(op: Op, query: Value) -> bool:
    """Return whether the inputs have three axes, with the heads side by side in the last."""
    return bool(op.rw.get("q_num_heads", 0)) and query.need_rank() == 3


def _by_head(value: Value, heads: int) -> Value:
    """Return [N, length, heads · size] as [N, heads, length, size]."""
    shape = value.shape
    size = shape[2] // heads if shape is not None and len(shape) == 3 and shape[2] is not None else -1
    return value.op.Transpose(value.reshape(0, 0, heads, size), perm=[0, 2, 1, 3])


def _repeated(op: Op, query: Value, value: Value) -> Value:
    """Return K or V with its heads repeated, so that it has as many heads as Q."""
    heads, own = (
        shape[1] if (shape := operand.shape) is not None and len(shape) == 4 else None
        for operand in (query, value)
    )
    if heads is not None and own is not None:
        if heads == own or heads % own:
            return value
        return op.Gather(value, np.repeat(np.arange(own), bounded(heads) // own), axis=1)
    number, shared = op.size_of(query, 1), op.size_of(value, 1)
    return op.Gather(value, op.iota(number) / (number / shared), axis=1)


def _root_of_scale(op: Op, query: Value, dtype: int) -> Value:
    """Return the square root of the scale. Both Q and K are multiplied by it."""
    scale = op.rw.get("scale")
    shape = query.shape
    if scale is None and shape is not None and shape[-1]:
        scale = np.float32(1) / np.sqrt(np.float32(shape[-1]))
    if scale is not None:
        return op.constant(np.sqrt(np.float32(scale)).astype(helper.tensor_dtype_to_np_dtype(dtype)))
    size = op.Squeeze(op.size_of(query, 3), [0]).cast(TensorProto.FLOAT)
    return op.Sqrt(op.Reciprocal(op.Sqrt(size))).cast(dtype)


@formula("RotaryEmbedding", since=23, exactness=EQUIVALENT, types=LostTypes.OWN)
def rotary_embedding(
    op: Op,
    x: Value,
    cos_cache: Value,
    sin_cache: Value,
    position_ids: Value | None,
    *,
    interleaved: int,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
) -> Value:
    """RotaryEmbedding begins with opset 23, so Mul, Sub and Add rotate the two halves of each head.

    What changes: a Gather selects the cosines and sines by position. The node becomes Slice, Mul, Sub, Add and Concat on the
    axis of the heads' elements. Inputs of three axes are reshaped to four, and the output is reshaped back.

    Why equal: the new nodes follow the algorithm in the standard's text. The results differ from ONNX Runtime's kernel by at
    most 1e-7 of the largest number, as measured.

    Limits: the rank of the data must be known if `num_heads` is given.
    """
    flat = bool(num_heads) and x.need_rank() == 3
    source = x.reshape(0, 0, num_heads, -1) if flat else x
    cos, sin = (
        op.Unsqueeze(
            cache if position_ids is None else op.Gather(cache, position_ids, axis=0), [2 if flat else 1]
        )
        for cache in (cos_cache, sin_cache)
    )
    whole, size = source.shape, rotary_embedding_dim
    if whole is not None and whole[-1] == size:
        size = 0
    rotated = op.Slice(source, [0], [size], [3]) if size else source
    if interleaved:
        first, second = (op.write("Slice", rotated, [start], [END], [3], [2]) for start in (0, 1))
    else:
        first, second = _halves(op, rotated, size or _known_size(rotated, cos_cache, sin_cache))
    parts = [cos * first - sin * second, sin * first + cos * second]
    if interleaved:
        pairs = [op.Unsqueeze(part, [4]) for part in parts]
        parts = [op.Concat(*pairs, axis=4).reshape(0, 0, 0, -1)]
    if size:
        parts.append(op.Slice(source, [size], [END], [3]))
    result = op.Concat(*parts, axis=3) if len(parts) > 1 else parts[0]
    return op.Reshape(result, op.Shape(x)) if flat else result


def _known_size(rotated: Value, *caches: Value) -> int:
    """Return how many elements the last axis has, or 0 if that is unknown. The caches have half as many."""
    for value, factor in ((rotated, 1), *((cache, 2) for cache in caches)):
        shape = value.shape
        if shape and shape[-1]:
            return shape[-1] * factor
    return 0


def _halves(op: Op, value: Value, size: int) -> tuple[Value, Value]:
    """Return the first and the second half of the last axis. `size` is its number of elements, or 0 if that is unknown."""
    if size:
        return op.Slice(value, [0], [size // 2], [3]), op.Slice(value, [size // 2], [size], [3])
    half = op.Div(op.Gather(op.Shape(value), [3]), [2])
    return op.write("Slice", value, [0], half, [3]), op.write("Slice", value, half, [END], [3])
