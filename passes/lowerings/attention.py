"""Attention: windows, lengths and short masks are what versions 25 and 24 added; below 23 it is written out."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .attention_mask import Mask
from .building import cast, iota, size_of, squeeze


@lowering("Attention", leaves=25, types=LostTypes.OWN)
def attention_25_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A node without a window stays; one with a window is written out.

    What changes: `left_window_size` and `right_window_size` of -1 are dropped. With a window the node becomes the operators that
    `attention-23-down` names, and the window is part of the mask.

    Why equal: -1 means no window. The window is that of the standard's text, counted from the position in the whole cache.

    Limits: with a window, those of `attention-23-down`.
    """
    windows = [rw.get(name, -1) for name in ("left_window_size", "right_window_size")]
    if max(windows) >= 0:
        _write_out(rw)
    else:
        rw.drop("left_window_size", "right_window_size")


@lowering("Attention", leaves=24, types=LostTypes.OWN)
def attention_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A mask that may be shorter than the keys is padded, and a node with `nonpad_kv_seqlen` is written out.

    What changes: a mask whose length is not known to be that of the keys gets a Pad with -inf, or False, whose amount is
    computed where the lengths are not fixed. With `nonpad_kv_seqlen` the node becomes the operators that `attention-23-down`
    names.

    Why equal: so the standard's text of version 24 defines a shorter mask.

    Limits: with `nonpad_kv_seqlen`, those of `attention-23-down`.
    """
    if rw.input(6):
        _write_out(rw)
    elif rw.input(3):
        mask = Mask(rw, rw.input(0), rw.input(1), 1 if _is_flat(rw) else 2, past=rw.input(4))
        padded = mask.padded(rw.input(3))
        if padded != rw.input(3):
            node.input[3] = padded
            rw.note("the mask is padded to the length of the keys")


@lowering("Attention", leaves=23, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def attention_23_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The attention is written out: MatMul, mask, Softmax, MatMul.

    What changes: Q and K are multiplied by the root of the scale and by each other, capped, masked, and given to a Softmax, by
    whose result V is multiplied. Three axes are reshaped to four before and back afterwards; heads of K and V that several
    heads of Q share are repeated by a Gather.

    Why equal: the standard's text and function body, with what they compute from shapes evaluated where it is known. Rows in
    which everything is masked give zeros, as the text says. Measured against ONNX Runtime's kernel: 3e-7 of the largest
    number.

    Limits: element types must be known, and the rank of Q where numbers of heads are given. `qk_matmul_output` of mode 2 holds
    -inf where a boolean or causal mask hides a key, as the text says; ONNX Runtime's kernel fills in the lowest number.
    """
    _write_out(rw)


def _write_out(rw: LoweringRewriter) -> None:
    rw.exactness = Exactness.EQUIVALENT
    dtype = rw.need_dtype(rw.input(0))
    heads, kv_heads = rw.get("q_num_heads", 0), rw.get("kv_num_heads", 0)
    flat = _is_flat(rw)
    query, key, value = (
        _by_head(rw, rw.input(index), number, name) if flat else rw.input(index)
        for index, number, name in ((0, heads, "query"), (1, kv_heads, "key"), (2, kv_heads, "value"))
    )
    if rw.input(4):
        key = rw.before("Concat", [rw.input(4), key], hint="keys", axis=2)
    if rw.input(5):
        value = rw.before("Concat", [rw.input(5), value], hint="values", axis=2)
    for index, present in ((1, key), (2, value)):
        if rw.output(index):
            rw.after("Identity", [present], [rw.output(index)])
    mask = Mask(rw, query, key)
    bias = mask.bias(dtype)  # before the heads are repeated, as their lengths are the same
    key, value = _repeated(rw, query, key, "key"), _repeated(rw, query, value, "value")
    value = cast(rw, value, dtype)
    scale = _root_of_scale(rw, query, dtype)
    transposed = rw.before("Transpose", [key], hint="key_transposed", perm=[0, 1, 3, 2])
    scores = rw.before(
        "MatMul",
        [
            rw.before("Mul", [query, scale], hint="query_scaled"),
            rw.before("Mul", [transposed, scale], hint="key_scaled"),
        ],
        hint="scores",
    )
    taken = [scores]
    cap = rw.get("softcap", 0.0)
    if cap:
        limit = rw.constant(np.array(cap, _numpy(dtype)), "softcap")
        bent = rw.before("Tanh", [rw.before("Div", [scores, limit], hint="capped")], hint="capped")
        scores = rw.before("Mul", [bent, limit], hint="scores")
    taken.append(scores)
    if bias:
        scores = rw.before("Add", [scores, bias], hint="scores")
    taken.append(scores)
    weights = _softmax(rw, scores, dtype)
    hidden = mask.hidden_rows(bias, dtype)
    if hidden:
        zero = rw.constant(np.array(0, _numpy(dtype)), "zero")
        weights = rw.before("Where", [hidden, zero, weights], hint="weights")
    taken.append(weights)
    _finish(rw, weights, value, flat)
    mode = rw.get("qk_matmul_output_mode", 0)
    if rw.output(3):
        rw.after("Identity", [taken[mode]], [rw.output(3)])
        if mode == 2 and bias and rw.is_read(rw.output(3)):
            rw.note(
                "qk_matmul_output holds -inf for keys that are hidden, where runtimes may have the lowest number",
                Exactness.ASSUMED,
            )
    rw.remove()


def _is_flat(rw: LoweringRewriter) -> bool:
    """Return whether the inputs have three axes, with the heads side by side in the last."""
    return bool(rw.get("q_num_heads", 0)) and rw.need_rank(rw.input(0)) == 3


def _by_head(rw: LoweringRewriter, value: str, heads: int, name: str) -> str:
    """Return [N, length, heads · size] as [N, heads, length, size]."""
    shape = rw.shape(value)
    size = shape[2] // heads if shape is not None and len(shape) == 3 and shape[2] is not None else -1
    target = rw.constant(np.array([0, 0, heads, size], np.int64), "heads")
    return rw.before(
        "Transpose",
        [rw.before("Reshape", [value, target], hint=f"{name}_heads")],
        hint=name,
        perm=[0, 2, 1, 3],
    )


def _repeated(rw: LoweringRewriter, query: str, value: str, name: str) -> str:
    """Repeat the heads of K or V that several heads of Q share, each as often as there are such heads."""
    heads, own = (
        shape[1] if (shape := rw.shape(item)) is not None and len(shape) == 4 else None
        for item in (query, value)
    )
    if heads is not None and own is not None:
        if heads == own or heads % own:
            return value
        places = rw.constant(np.repeat(np.arange(own), heads // own), "shared_heads")
    else:
        number, shared = (size_of(rw, item, 1) for item in (query, value))
        counted = iota(rw, number)
        places = rw.before(
            "Div", [counted, rw.before("Div", [number, shared], hint="shared")], hint="shared_heads"
        )
    return rw.before("Gather", [value, places], hint=f"{name}_repeated", axis=1)


def _root_of_scale(rw: LoweringRewriter, query: str, dtype: int) -> str:
    """Return the root of the scale, by which both Q and K are multiplied."""
    scale = rw.get("scale")
    shape = rw.shape(query)
    if scale is None and shape is not None and shape[-1]:
        scale = np.float32(1) / np.sqrt(np.float32(shape[-1]))
    if scale is not None:
        return rw.constant(np.sqrt(np.float32(scale)).astype(_numpy(dtype)), "scale")
    size = squeeze(rw, size_of(rw, query, 3), [0])
    root = rw.before("Sqrt", [cast(rw, size, int(onnx.TensorProto.FLOAT))], hint="scale")
    root = rw.before("Sqrt", [rw.before("Reciprocal", [root], hint="scale")], hint="scale")
    return cast(rw, root, dtype)


def _softmax(rw: LoweringRewriter, scores: str, dtype: int) -> str:
    precision = rw.get("softmax_precision", 0) or dtype
    weights = rw.before("Softmax", [cast(rw, scores, precision)], hint="weights", axis=-1)
    return cast(rw, weights, dtype, hint="weights")


def _finish(rw: LoweringRewriter, weights: str, value: str, flat: bool) -> None:
    """Write the product of the weights and V, with the heads side by side if the inputs have them so."""
    if not flat:
        rw.after("MatMul", [weights, value], [rw.output(0)])
        return
    result = rw.before("MatMul", [weights, value], hint="result")
    shape = rw.shape(result)
    sizes = shape[1::2] if shape is not None else ()
    hidden = sizes[0] * sizes[1] if len(sizes) == 2 and None not in sizes else -1  # type: ignore[operator]
    target = rw.constant(np.array([0, 0, hidden], np.int64), "joined")
    turned = rw.before("Transpose", [result], hint="result", perm=[0, 2, 1, 3])
    rw.after("Reshape", [turned, target], [rw.output(0)])


def _numpy(dtype: int) -> np.dtype[np.generic]:
    return onnx.helper.tensor_dtype_to_np_dtype(dtype)
