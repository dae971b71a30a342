"""OneHot: indices counted from the end below opset 11, and the operator below opset 9."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, iota, unsqueeze
from .flat_index import along


@lowering("OneHot", leaves=11)
def one_hot_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Indices and `axis` are counted from the front.

    What changes: depth is added to negative indices, and a negative axis other than -1 is replaced. Indices that are known not to
    be negative stay.

    Why equal: below version 11 an index outside of [0, depth) gives a row of off values (onnx/defs/tensor/old.cc). Indices
    below -depth stay negative.

    Limits: the rank of the indices must be known for an axis below -1.
    """
    axis = int(rw.get("axis", -1))
    if axis < -1:
        rw.set("axis", axis + rw.need_rank(rw.input(0)) + 1)
    indices, depth = rw.input(0), rw.input(1)
    known = rw.known(indices)
    if known is not None and bool((known >= 0).all()):
        return
    dtype = rw.need_dtype(indices)
    if dtype in (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64):
        return
    # Fractions are cut off before the comparison, as the operator does.
    whole = indices if dtype == TensorProto.INT32 else cast(rw, indices, TensorProto.INT64)
    of_type = rw.need_dtype(whole)
    zero = rw.constant(np.array(0, rw.numpy_type(whole)), "zero")
    below = rw.before("Less", [whole, zero], hint="negative")
    below = rw.before("Cast", [below], hint="negative", to=of_type)
    size = rw.before(
        "Reshape", [cast(rw, depth, of_type), rw.constant(np.zeros(0, np.int64), "scalar")], hint="depth"
    )
    moved = rw.before("Add", [whole, rw.before("Mul", [below, size], hint="wrapped")], hint="indices")
    rw.set_input(0, cast(rw, moved, dtype))


@lowering("OneHot", leaves=9)
def one_hot_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no OneHot: the indices are compared with 0, 1, 2 … and Gather takes the values.

    Why equal: an element is the on value where its place on the new axis is the index. Values are moved, never computed with.

    Limits: the rank of the indices must be known.
    """
    indices, depth, values = rw.input(0), rw.input(1), rw.input(2)
    rank = rw.need_rank(indices)
    axis = int(rw.pop("axis", -1)) % (rank + 1)
    size = rw.before("Reshape", [cast(rw, depth, TensorProto.INT64), integers(rw, 1)], hint="depth")
    places = along(rw, iota(rw, size), axis, rank + 1)
    given = unsqueeze(rw, cast(rw, indices, TensorProto.INT64), [axis])
    equal = rw.before("Equal", [given, places], hint="hot")
    rw.rename("Gather")
    rw.set("axis", 0)
    rw.set_input(2, "")
    rw.set_input(0, values)
    rw.set_input(1, rw.before("Cast", [equal], hint="hot", to=int(TensorProto.INT64)))
