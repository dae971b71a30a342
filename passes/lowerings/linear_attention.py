"""LinearAttention: a Scan over time, which carries the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, size_of, squeeze

_FLOAT = int(TensorProto.FLOAT)


@lowering("LinearAttention", leaves=27, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def linear_attention_27_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The recurrence is written out as a Scan over time.

    What changes: the inputs are reshaped to [time, N, heads, …] in float; the body of the Scan decays the state, corrects it,
    adds the product of key and value, and multiplies the query by it. The operators of the body have one form from opset 9
    to 26.

    Why equal: the equations of the standard's text, in float as its function body has them. Measured against onnx.reference:
    1e-6.

    Limits: the element types must be known.
    """
    heads, own = rw.get("q_num_heads"), rw.get("kv_num_heads")
    dtype = rw.need_dtype(rw.input(0))
    rule = rw.get("update_rule", "gated_delta")
    inputs = {
        "query": _by_time(rw, 0, "query", heads, (0, 0, 0, 1, -1)),
        "key": _by_time(rw, 1, "key", own, (0, 0, 0, -1, 1)),
        "value": _by_time(rw, 2, "value", own, (0, 0, 0, 1, -1)),
    }
    if rule in ("gated", "gated_delta"):
        inputs["decay"] = rw.before("Exp", [_by_time(rw, 4, "decay", own, (0, 0, 0, -1, 1))], hint="decay")
    if rule in ("delta", "gated_delta"):
        inputs["beta"] = _by_time(rw, 5, "beta", -1, (0, 0, 0, 1, 1))
    body = _step(rw, list(inputs), _scale(rw, heads), heads // own, own)
    state = cast(rw, rw.input(3), _FLOAT, hint="state") if rw.input(3) else _no_state(rw, heads, own)
    final = rw.before(
        "Scan", [state, *inputs.values()], hint="state", outputs=2, body=body, num_scan_inputs=len(inputs)
    )
    stacked = rw.preceding[-1].output[1]
    rw.scope.record_type(final, ValueType(_FLOAT, (None,) * 4))
    rw.scope.record_type(stacked, ValueType(_FLOAT, (None,) * 5))
    turned = rw.before("Transpose", [stacked], hint="by_item", perm=[1, 0, 2, 3, 4])
    flat = integers(rw, 0, 0, -1)
    _give_out(rw, "Reshape", [turned, flat], rw.output(0), dtype)
    if rw.output(1):
        _give_out(rw, "Identity", [final], rw.output(1), rw.need_dtype(rw.input(3)) if rw.input(3) else dtype)
    rw.remove()


def _by_time(rw: LoweringRewriter, index: int, name: str, heads: int, shape: tuple[int, ...]) -> str:
    """Return an input of [N, time, heads · size] as [time, N, heads, …] in float; `shape` is the last Reshape's."""
    value = cast(rw, rw.input(index), _FLOAT, hint=name)
    sizes = (0, 0, heads, -1) if heads > 0 else (0, 0, -1, 1)
    split = rw.before("Reshape", [value, integers(rw, *sizes)], hint=f"{name}_heads")
    turned = rw.before("Transpose", [split], hint=f"{name}_by_time", perm=[1, 0, 2, 3])
    return rw.before("Reshape", [turned, integers(rw, *shape)], hint=name)


def _step(rw: LoweringRewriter, names: list[str], scale: str, shared: int, own: int) -> onnx.GraphProto:
    """Return the body of the Scan: state [N, heads, k, v] and what `names` say, to the new state and what is read from it."""
    nodes: list[onnx.NodeProto] = []

    def write(operator: str, *inputs: str, **attributes: Any) -> str:
        output = rw.fresh(operator.lower())
        nodes.append(helper.make_node(operator, list(inputs), [output], name=rw.fresh("step"), **attributes))
        return output

    values = {name: rw.fresh(f"{name}_now") for name in ("state", *names)}
    state, written = values["state"], values["value"]
    if "decay" in values:
        state = write("Mul", state, values["decay"])
    if "beta" in values:
        row = write("Transpose", values["key"], perm=[0, 1, 3, 2])
        missing = write("Sub", written, write("MatMul", row, state))
        written = write("Mul", values["beta"], missing)
    state = write("Add", state, write("Mul", values["key"], written))
    read = state
    if shared > 1:
        read = write("Gather", state, rw.constant(np.repeat(np.arange(own), shared), "shared_heads"), axis=1)
    result = write("Mul", write("MatMul", values["query"], read), scale)
    return helper.make_graph(
        nodes,
        rw.fresh("step"),
        [helper.make_tensor_value_info(name, _FLOAT, [None] * 4) for name in values.values()],
        [helper.make_tensor_value_info(name, _FLOAT, [None] * 4) for name in (state, result)],
    )


def _scale(rw: LoweringRewriter, heads: int) -> str:
    scale, shape = rw.get("scale", 0.0), rw.shape(rw.input(0))
    if not scale and shape is not None and (width := shape[2]) is not None:
        scale = 1 / np.sqrt(np.float32(width // heads))
    if scale:
        return rw.constant(np.array(scale, np.float32), "scale")
    size = rw.before("Div", [size_of(rw, rw.input(0), 2), integers(rw, heads)], hint="size")
    root = rw.before("Sqrt", [cast(rw, squeeze(rw, size, [0]), _FLOAT)], hint="scale")
    return rw.before("Reciprocal", [root], hint="scale")


def _no_state(rw: LoweringRewriter, heads: int, own: int) -> str:
    """Return zeros of [N, heads, k, v]."""
    keys = rw.before("Div", [size_of(rw, rw.input(0), 2), integers(rw, heads)], hint="key_size")
    values = rw.before("Div", [size_of(rw, rw.input(2), 2), integers(rw, own)], hint="value_size")
    sizes = [size_of(rw, rw.input(0), 0), integers(rw, own), keys, values]
    return rw.before(
        "ConstantOfShape", [rw.before("Concat", sizes, hint="state_shape", axis=0)], hint="state"
    )


def _give_out(rw: LoweringRewriter, operator: str, inputs: list[str], output: str, dtype: int) -> None:
    if dtype == _FLOAT:
        rw.after(operator, inputs, [output])
    else:
        rw.after("Cast", [rw.before(operator, inputs, hint="result")], [output], to=dtype)
