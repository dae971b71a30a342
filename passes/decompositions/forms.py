"""Operators whose form depends on the opset, as decompositions write them: they serve every opset from 7 on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ..lowerings.building import integers, reduce, scalar

__all__ = [
    "axes_of_reduction",
    "become",
    "clip",
    "column",
    "is_float",
    "negative",
    "number",
    "positive",
    "reduce_as",
    "sign",
    "spatial_axes",
]


def become(rw: LoweringRewriter, operator: str, *inputs: str) -> None:
    """Let the node be the last one of its decomposition: another operator, of these inputs, without attributes.

    In place of an Identity, the node written last produces the output, if it is that which gives the value.
    """
    last = rw.preceding[-1] if rw.preceding else None
    if operator == "Identity" and last is not None and list(last.output) == list(inputs):
        last.output[0] = rw.output(0)
        rw.remove()
        return
    rw.drop(*(attribute.name for attribute in list(rw.node.attribute)))
    rw.rename(operator)
    del rw.node.input[:]
    rw.node.input.extend(inputs)


def clip(rw: LoweringRewriter, value: str, low: float, high: float) -> str:
    """Limit floats to low … high."""
    if rw.version >= 11:
        return rw.before("Clip", [value, scalar(rw, low, value), scalar(rw, high, value)])
    return rw.before("Clip", [value], min=float(low), max=float(high))


def positive(rw: LoweringRewriter, value: str) -> str:
    """Return floats where they are positive, 0 elsewhere."""
    return rw.before("Relu", [value], hint="positive")


def negative(rw: LoweringRewriter, value: str) -> str:
    """Return the absolute value of floats where they are negative, 0 elsewhere."""
    return positive(rw, rw.before("Neg", [value], hint="opposite"))


def axes_of_reduction(rw: LoweringRewriter) -> list[int] | str | None:
    """Return the axes of a Reduce node: numbers, the name of a value that is computed, None for all axes.

    Refuses with `no-equal` a node that reduces nothing (`noop_with_empty_axes`), or may, depending on its axes.
    """
    noop = bool(rw.get("noop_with_empty_axes", 0))
    given: list[int] | str | None = rw.get("axes")
    if given is None and rw.input(1):
        known = rw.known(rw.input(1))
        given = rw.input(1) if known is None else [int(axis) for axis in known.reshape(-1)]
    if noop and (given is None or given == [] or isinstance(given, str)):
        rw.refuse("noop_with_empty_axes is set, and its axes are not known to be some", code="no-equal")
    return None if given == [] else given


def reduce_as(
    rw: LoweringRewriter,
    operator: str,
    value: str,
    axes: Sequence[int] | str | None,
    *,
    keepdims: bool,
) -> str:
    """Write a Reduce over axes that `axes_of_reduction` returned."""
    if isinstance(axes, str):
        if rw.version < (13 if operator == "ReduceSum" else 18):
            rw.refuse(f"{operator} takes no computed axes at opset {rw.version}", code="needs-constant")
        return rw.before(operator, [value, axes], keepdims=int(keepdims))
    if axes is None:
        return rw.before(operator, [value], keepdims=int(keepdims))
    return reduce(rw, operator, value, axes, keepdims=keepdims)


def spatial_axes(rw: LoweringRewriter) -> list[int]:
    """Return the axes of the first input behind batch and channels, or refuse with `needs-rank`."""
    return list(range(2, rw.need_rank(rw.input(0))))


def column(rw: LoweringRewriter, value: str, rank: int) -> str:
    """Give a vector of one number per channel the shape [C, 1, …], so that it is broadcast along axis 1."""
    shape = [-1, *([1] * (rank - 2))]
    return rw.before("Reshape", [value, integers(rw, *shape)], hint="column")


def is_float(rw: LoweringRewriter, value: str) -> bool:
    """Return whether a value has floats, or refuse with `needs-type`."""
    dtype = rw.need_dtype(value)
    return dtype in (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def number(rw: LoweringRewriter, value: float, like: str) -> str:
    """Return a scalar of the element type of `like`, rounded from a float32 as attributes are."""
    return rw.constant(np.array(np.float32(value), rw.numpy_type(like)), "number")


def sign(rw: LoweringRewriter, value: str, size: str) -> str:
    """Return floats divided by their absolute values `size`: 1 or -1, and 0 for 0 and what is hardly more."""
    limits = np.finfo(rw.numpy_type(value))
    least = limits.tiny if limits.dtype != np.float16 else limits.smallest_subnormal
    least_size = rw.constant(np.array(least, limits.dtype), "least")
    return rw.before("Div", [value, rw.before("Add", [size, least_size])], hint="sign")
