"""RotaryEmbedding: written out in slices, products and sums."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_END = np.iinfo(np.int64).max


@lowering("RotaryEmbedding", leaves=23, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def rotary_embedding_23_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The two halves of each head are rotated by the cosines and sines of their positions.

    What changes: the caches are gathered by position, and the node becomes Slice, Mul, Sub, Add and Concat on the axis of
    the heads' elements. Three axes are reshaped to four before and back afterwards.

    Why equal: the algorithm in the standard's text. Measured against ONNX Runtime's kernel: 1e-7 of the largest number.

    Limits: the rank of the data must be known if `num_heads` is given.
    """
    source, heads = rw.input(0), rw.get("num_heads", 0)
    flat = bool(heads) and rw.need_rank(source) == 3
    if flat:
        shape = rw.constant(np.array([0, 0, heads, -1]), "heads")
        source = rw.before("Reshape", [source, shape], hint="by_head")
    between = 2 if flat else 1
    cos, sin = (_cache(rw, index, hint, between) for index, hint in ((1, "cos"), (2, "sin")))
    rotated, size = source, rw.get("rotary_embedding_dim", 0)
    whole = rw.shape(source)
    if whole is not None and whole[-1] == size:
        size = 0
    if size:
        rotated = _slice(rw, source, 0, size, "rotated")
    if rw.get("interleaved", 0):
        first, second = (
            _slice(rw, rotated, start, _END, hint, 2) for start, hint in ((0, "even"), (1, "odd"))
        )
    else:
        first, second = _halves(rw, rotated, size)
    real = rw.before("Sub", [_mul(rw, cos, first), _mul(rw, sin, second)], hint="real")
    imaginary = rw.before("Add", [_mul(rw, sin, first), _mul(rw, cos, second)], hint="imaginary")
    if rw.get("interleaved", 0):
        last = rw.constant(np.array([4]), "last")
        pairs = [rw.before("Unsqueeze", [part, last], hint="pair") for part in (real, imaginary)]
        joined = rw.before("Concat", pairs, hint="pairs", axis=4)
        parts = [
            rw.before("Reshape", [joined, rw.constant(np.array([0, 0, 0, -1]), "joined")], hint="interleaved")
        ]
    else:
        parts = [real, imaginary]
    if size:
        parts.append(_slice(rw, source, size, _END, "kept"))
    output = rw.output(0)
    if flat:
        result = rw.before("Concat", parts, hint="result", axis=3) if len(parts) > 1 else parts[0]
        rw.after("Reshape", [result, rw.before("Shape", [rw.input(0)], hint="shape")], [output])
    elif len(parts) > 1:
        rw.after("Concat", parts, [output], axis=3)
    else:
        rw.after("Identity", parts, [output])
    rw.remove()


def _cache(rw: LoweringRewriter, index: int, hint: str, axis: int) -> str:
    """Return the cosines or sines of the positions with an axis of 1 for the heads."""
    value = rw.input(index)
    if rw.input(3):
        value = rw.before("Gather", [value, rw.input(3)], hint=f"{hint}_rows", axis=0)
    return rw.before("Unsqueeze", [value, rw.constant(np.array([axis]), "heads_axis")], hint=hint)


def _halves(rw: LoweringRewriter, value: str, size: int) -> tuple[str, str]:
    """Return the first and the second half of the last axis, which has `size` elements, 0 if that is unknown."""
    for shape, factor in ((rw.shape(value), 1), (rw.shape(rw.input(1)), 2), (rw.shape(rw.input(2)), 2)):
        if not size and shape and shape[-1] is not None:
            size = shape[-1] * factor
    if size:
        return _slice(rw, value, 0, size // 2, "first"), _slice(rw, value, size // 2, size, "second")
    lengths = rw.before("Shape", [value], hint="lengths")
    length = rw.before("Gather", [lengths, rw.constant(np.array([3]), "axis")], hint="length")
    half = rw.before("Div", [length, rw.constant(np.array([2]), "two")], hint="half")
    zero, end, axis = (rw.constant(np.array([number]), "bound") for number in (0, _END, 3))
    return (
        rw.before("Slice", [value, zero, half, axis], hint="first"),
        rw.before("Slice", [value, half, end, axis], hint="second"),
    )


def _slice(rw: LoweringRewriter, value: str, start: int, end: int, hint: str, step: int = 1) -> str:
    numbers = (start, end, 3) if step == 1 else (start, end, 3, step)
    bounds = [rw.constant(np.array([number]), "bound") for number in numbers]
    return rw.before("Slice", [value, *bounds], hint=hint)


def _mul(rw: LoweringRewriter, a: str, b: str) -> str:
    return rw.before("Mul", [a, b], hint="product")
