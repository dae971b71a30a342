"""RotaryEmbedding: written out in slices, products and sums."""

from __future__ import annotations

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Value, formula

_END = int(np.iinfo(np.int64).max)


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
    """The two halves of each head are rotated by the cosines and sines of their positions.

    What changes: the caches are gathered by position, and the node becomes Slice, Mul, Sub, Add and Concat on the axis of
    the heads' elements. Three axes are reshaped to four before and back afterwards.

    Why equal: the algorithm in the standard's text. Measured against ONNX Runtime's kernel: 1e-7 of the largest number.

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
        first, second = (op.write("Slice", rotated, [start], [_END], [3], [2]) for start in (0, 1))
    else:
        first, second = _halves(op, rotated, size or _known_size(rotated, cos_cache, sin_cache))
    parts = [cos * first - sin * second, sin * first + cos * second]
    if interleaved:
        pairs = [op.Unsqueeze(part, [4]) for part in parts]
        parts = [op.Concat(*pairs, axis=4).reshape(0, 0, 0, -1)]
    if size:
        parts.append(op.Slice(source, [size], [_END], [3]))
    result = op.Concat(*parts, axis=3) if len(parts) > 1 else parts[0]
    return op.Reshape(result, op.Shape(x)) if flat else result


def _known_size(rotated: Value, *caches: Value) -> int:
    """Return how many elements the last axis has, of which the caches have half; 0 if that is unknown."""
    for value, factor in ((rotated, 1), *((cache, 2) for cache in caches)):
        shape = value.shape
        if shape and shape[-1]:
            return shape[-1] * factor
    return 0


def _halves(op: Op, value: Value, size: int) -> tuple[Value, Value]:
    """Return the first and the second half of the last axis, which has `size` elements, 0 if that is unknown."""
    if size:
        return op.Slice(value, [0], [size // 2], [3]), op.Slice(value, [size // 2], [size], [3])
    half = op.Div(op.Gather(op.Shape(value), [3]), [2])
    return op.write("Slice", value, [0], half, [3]), op.write("Slice", value, half, [_END], [3])
