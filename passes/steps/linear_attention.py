"""LinearAttention: a Scan over time, which carries the state."""

from __future__ import annotations

from functools import partial

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Result, TensorProto, Value, formula
from onnx_migrate.facts.value_types import ValueType

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
) -> Result:
    """The recurrence is written out as a Scan over time.

    What changes: the inputs are reshaped to [time, N, heads, …] in float; the body of the Scan decays the state, corrects it,
    adds the product of key and value, and multiplies the query by it. The operators of the body have one form from opset 9
    to 26.

    Why equal: the equations of the standard's text, in float as its function body has them. Measured against onnx.reference:
    1e-6.
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
            op.Div(op.size_of(item, 2).as_written(), [count])
            for item, count in ((query, q_num_heads), (value, kv_num_heads))
        )
        state = op.ConstantOfShape(op.Concat(op.size_of(query, 0), [kv_num_heads], *sizes, axis=0))
    final, stacked = op.several("Scan", 2, state, *inputs.values(), body=body, num_scan_inputs=len(inputs))
    op.rw.scope.record_type(final.name, ValueType(_FLOAT, (None,) * 4))
    op.rw.scope.record_type(stacked.name, ValueType(_FLOAT, (None,) * 5))
    result = op.Transpose(stacked, perm=[1, 0, 2, 3, 4]).reshape(0, 0, -1).cast(dtype)
    if not op.rw.output(1):
        return result
    return result, final.cast(past_state.need_dtype() if past_state is not None else dtype)


def _by_time(value: Value, heads: int, *shape: int) -> Value:
    """Return an input of [N, time, heads · size] as [time, N, heads, …] in float; `shape` is the last Reshape's."""
    split = value.cast(_FLOAT).reshape(*((0, 0, heads, -1) if heads > 0 else (0, 0, -1, 1)))
    return value.op.Transpose(split, perm=[1, 0, 2, 3]).reshape(*shape)


def _step(
    op: Op, names: list[str], scale: Value, shared: int, own: int, *given: Value
) -> tuple[Value, Value]:
    """Return the new state [N, heads, k, v] and what is read from it, of the state and what `names` say."""
    state, now = given[0], dict(zip(names, given[1:], strict=True))
    written = now["value"]
    if "decay" in now:
        state = state * now["decay"]
    if "beta" in now:
        row = op.Transpose(now["key"], perm=[0, 1, 3, 2])
        written = now["beta"] * (written - row @ state)
    state = state + now["key"] * written
    read = op.Gather(state, np.repeat(np.arange(own), shared), axis=1) if shared > 1 else state
    return state, now["query"] @ read * scale


def _scale(op: Op, query: Value, heads: int) -> Value:
    """Return the reciprocal of the root of a key's size."""
    shape = query.shape
    if shape is not None and (width := shape[2]) is not None:
        return op.constant(np.array(1 / np.sqrt(np.float32(width // heads)), np.float32))
    size = op.Squeeze(op.Div(op.size_of(query, 2), [heads]), [0])
    return op.Reciprocal(op.Sqrt(size.cast(_FLOAT)))
