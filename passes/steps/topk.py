"""TopK: the order of results began with opset 11, and below 10 k is an attribute."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.plugins import (
    Exactness,
    LostTypes,
    LoweringRewriter,
    Rewriter,
    adapter,
    compatible,
    lowering,
)
from onnx_migrate.standard.element_types import type_name

compatible(
    "TopK", 11, reason="largest and sorted were added; their defaults are the behaviour of older versions"
)


@adapter("TopK", to=10)
def topk_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`k` moves from an attribute to an input, a vector of one element."""
    k = rw.attribute("k")
    if k is not None and k.ref_attr_name:
        rw.attribute_to_input("k", 1)
        minus_one = rw.constant(np.array([-1]), "shape")
        rw.set_input(1, rw.before("Reshape", [rw.input(1), minus_one], hint="k"))
    else:
        rw.set_input(1, rw.constant(np.array([rw.pop("k")]), "k"))


@lowering("TopK", leaves=11, types=LostTypes.OWN)
def topk_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """TopK-10 returns the largest elements, only of floats, and always sorted.

    What changes: `sorted` is dropped, since the older version always sorts. For `largest`=0 the node gets the negated elements,
    and its values are negated back. Integers of up to 32 bits are cast to double.

    Why equal: the negated order is the reverse one. Of equal elements, the one with the lower index comes first in both. Bit
    for bit in ONNX Runtime, signs of zero included.

    Limits: onnx-migrate refuses 64-bit integers, since no float type holds all of them. With sorted=0 the standard allowed any
    order of the results. For data with NaNs, the standard does not say which elements TopK returns.
    """
    dtype = rw.dtype(rw.input(0))
    if dtype is not None and dtype not in (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE):
        if dtype in (TensorProto.INT64, TensorProto.UINT64):
            rw.refuse(
                f"TopK does not support {type_name(dtype)} below opset 11, and no float type represents all of its values",
                code="no-equal",
                hint="cast the elements to int32 or double in the model, if they fit",
            )
        rw.cast_around([0], [0], TensorProto.DOUBLE, dtype)
        rw.note("integers are ordered as double between Casts")
    if not rw.pop("sorted", 1):
        rw.note("the results are in order, which sorted=0 leaves open", Exactness.ASSUMED)
    if rw.pop("largest", 1):
        return
    name = rw.output(0)
    node.input[0] = rw.before("Neg", [rw.input(0)], hint="negated")
    if name:
        rw.after("Neg", [rw.detach_output(0, "negated_values")], [name])
    rw.note("the smallest elements are the largest of the negated ones")


@lowering("TopK", leaves=10)
def topk_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`k` moves from an input to an attribute.

    Why equal: the changelog of version 10 moves it and changes nothing else.

    Limits: it must be a constant.
    """
    k = rw.need_constant(1, "k")
    rw.set_input(1, "")
    rw.set("k", int(k.item()))
