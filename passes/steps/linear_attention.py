"""LinearAttention becomes a Scan over time that carries the state."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Result, TensorProto, Value, formula
from onnx_migrate.facts.value_types import ValueType

from .attention_heads import repeated

_FLOAT = int(TensorProto.FLOAT)


@formula("LinearAttention", since=27, exactness=EQUIVALENT, types=LostTypes.OWN)
def linear_attention(
    op: Op,
    query: Value,
    key: Value,
    value: Value,
    past_state: Value | None,
    decay: Value | None,
    beta: Value | None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    scale: float,
    update_rule: str,
) -> tuple[Value, Value | None]:
    """LinearAttention becomes a Scan over time that computes the recurrence.

    What changes: the inputs are reshaped to [time, N, heads, …] in float. The body of the Scan decays the state, corrects it
    and adds the product of key and value. Then it multiplies the query by the state. The operators of the body have the same
    form from opset 9 to 26.

    Why equal: the body computes the equations of the standard's text in float, like its function body. The results differ
    from onnx.reference by at most 1e-6, as measured.
    """
    dtype = query.need_dtype()
    inputs = {
        "query": _by_time(query, q_num_heads, 0, 0, 0, 1, -1),
        "key": _by_time(key, kv_num_heads, 0, 0, 0, -1, 1),
        "value": _by_time(value, kv_num_heads, 0, 0, 0, 1, -1),
    }
    if decay is not None and update_rule in ("gated", "gated_delta"):
        inputs["decay"] = op.Exp(_by_time(decay, kv_num_heads, 0, 0, 0, -1, 1))
    if beta is not None and update_rule in ("delta", "gated_delta"):
        inputs["beta"] = _by_time(beta, -1, 0, 0, 0, 1, 1)
    factor = op.constant(np.array(scale, np.float32)) if scale else _scale(op, query, q_num_heads)
    step = partial(_step, op, list(inputs), factor, q_num_heads // kv_num_heads, kv_num_heads)
    body = op.body("step", step, *[(_FLOAT, 4)] * (1 + len(inputs)))
    if past_state is not None:
        state = past_state.cast(_FLOAT)
    else:
        sizes = (
            op.Div(op.size_of(tensor, 2).as_written(), [count])
            for tensor, count in ((query, q_num_heads), (value, kv_num_heads))
        )
        state = op.ConstantOfShape(op.Concat(op.size_of(query, 0), [kv_num_heads], *sizes, axis=0))
    final, stacked = op.several("Scan", 2, state, *inputs.values(), body=body, num_scan_inputs=len(inputs))
    op.rw.scope.record_type(final.name, ValueType(_FLOAT, (None,) * 4))
    op.rw.scope.record_type(stacked.name, ValueType(_FLOAT, (None,) * 5))
    result = op.Transpose(stacked, perm=[1, 0, 2, 3, 4]).reshape(0, 0, -1).cast(dtype)
    state_type = dtype if past_state is None else past_state.need_dtype()
    return result, final.cast(state_type) if op.is_read(1) else None


@formula("com.microsoft::LinearAttention", since=1, exactness=EQUIVALENT)
def linear_attention_of_microsoft(
    op: Op,
    query: Value,
    key: Value,
    value: Value,
    past_state: Value | None,
    decay: Value | None,
    beta: Value | None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
    chunk_size: int = 64,
    state_window: int = 0,
) -> Result:
    """LinearAttention of com.microsoft becomes that of the standard, with its shared heads of keys repeated.

    What changes: a Gather repeats the heads of keys. It also repeats those of queries if they are fewer than those of values.

    Why equal: onnxruntime/contrib_ops/cpu/bert/linear_attention.cc computes the same.
    """
    if state_window:
        op.refuse("it has a window of states", code="no-equal")
    size = query.need_size(2) // q_num_heads
    key = _by_size(key, size, kv_num_heads)
    query = _by_size(query, size, max(q_num_heads, kv_num_heads))
    heads = {"q_num_heads": max(q_num_heads, kv_num_heads), "kv_num_heads": kv_num_heads}
    return linear_attention(
        op, query, key, value, past_state, decay, beta, **heads, scale=scale, update_rule=update_rule
    )


@formula("com.microsoft::GatedDeltaNet", since=1, exactness=EQUIVALENT)
def gated_delta_net(
    op: Op,
    query: Value,
    key: Value | None,
    value: Value | None,
    lengths: Value | None,
    decay: Value | None,
    beta: Value | None,
    state: Value | None,
    a_log: Value | None,
    dt_bias: Value | None,
    *,
    beta_activation: str = "none",
    chunk_size: int = 64,
    gate_activation: str = "none",
    gate_lower_bound: float = -5.0,
    qk_l2_norm: int = 0,
    scale: float = 0.0,
    state_update_capacity: int = 0,
    update_rule: str = "gated_delta",
) -> Result:
    """GatedDeltaNet becomes the standard's LinearAttention, with a transposed state.

    What changes: the items of a batch, all of one length, become an axis of their own. Other operators first compute the
    activations of decay and beta, and normalise queries and keys.

    Why equal: the new nodes follow the text in onnxruntime/core/graph/contrib_ops/bert_defs.cc, and were measured against the
    kernel.

    Limits: onnx-migrate refuses items of several lengths, packed inputs and compact updates of the state.
    """
    if lengths is not None or state_update_capacity or key is None or value is None or state is None:
        op.refuse("it packs items of several lengths, or its inputs, or its updates", code="no-equal")
    heads, size = state.need_size(1), state.need_size(3)
    if decay is not None and a_log is not None and dt_bias is not None and gate_activation != "none":
        each = [heads, -1] if decay.need_rank() == query.need_rank() else [heads]
        rate, total = op.Exp(a_log).reshape(*each), decay.cast(_FLOAT) + dt_bias.reshape(*each)
        soft = gate_activation in ("softplus", "qwen")
        decay = -rate * op.Softplus(total) if soft else op.Sigmoid(rate * total) * gate_lower_bound
    if beta is not None and beta_activation == "sigmoid":
        beta = op.Sigmoid(beta.cast(_FLOAT))
    if qk_l2_norm:
        query, key = (op.LpNormalization(operand.cast(_FLOAT), axis=-1, p=2) for operand in (query, key))
    own, axis = query.need_size(-2), query.need_rank() - 2
    query, key = (repeated(operand, axis, own, heads) for operand in (query, key))
    batch, count = op.size_of(state, 0), op.size_of(value, axis - 1)
    rows = op.Concat(batch, count if axis == 2 else op.Div(count, batch), [-1], axis=0)
    operands = [
        None if operand is None else op.Reshape(operand, rows) for operand in (query, key, value, decay, beta)
    ]
    turned = op.Transpose(state, perm=[0, 1, 3, 2])
    sizes: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": heads, "scale": scale or size**-0.5}
    outputs = linear_attention(op, *operands[:3], turned, *operands[3:], **sizes, update_rule=update_rule)
    assert isinstance(outputs, tuple)
    result = op.Reshape(outputs[0], op.shape_of(value)).cast(value.need_dtype())
    return result, None if outputs[1] is None else op.Transpose(outputs[1], perm=[0, 1, 3, 2])


def _by_size(value: Value, size: int, heads: int) -> Value:
    """Return (batch, time, heads · size), with each head repeated until there are `heads`."""
    own = value.need_size(2) // size
    if own == heads:
        return value
    return repeated(value.reshape(0, 0, own, size), 2, own, heads).reshape(0, 0, heads * size)


def _by_time(value: Value, heads: int, *shape: int) -> Value:
    """Return an input of [N, time, heads · size] as [time, N, heads, …] in float. `shape` is that of the last Reshape."""
    split = value.cast(_FLOAT).reshape(*((0, 0, heads, -1) if heads > 0 else (0, 0, -1, 1)))
    return value.op.Transpose(split, perm=[1, 0, 2, 3]).reshape(*shape)


def _step(
    op: Op, names: list[str], scale: Value, shared: int, own: int, *given: Value
) -> tuple[Value, Value]:
    """Return the new state [N, heads, k, v] and the output of one step. `given` holds the old state and the inputs in `names`."""
    state, now = given[0], dict(zip(names, given[1:], strict=True))
    written = now["value"]
    if "decay" in now:
        state = state * now["decay"]
    if "beta" in now:
        row = op.Transpose(now["key"], perm=[0, 1, 3, 2])
        written = now["beta"] * (written - row @ state)
    state = state + now["key"] * written
    return state, now["query"] @ repeated(state, 1, own, own * shared) * scale


def _scale(op: Op, query: Value, heads: int) -> Value:
    """Return the reciprocal of the square root of a key's size."""
    shape = query.shape
    if shape is not None and (width := shape[2]) is not None:
        return op.constant(np.array(1 / np.sqrt(np.float32(width // heads)), np.float32))
    size = op.Squeeze(op.Div(op.size_of(query, 2), [heads]), [0])
    return op.Reciprocal(op.Sqrt(size.cast(_FLOAT)))
