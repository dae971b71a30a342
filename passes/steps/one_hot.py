"""OneHot: indices counted from the end below opset 11, and the operator below opset 9."""

from __future__ import annotations

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value, formula

from .flat_index import along

_T = TensorProto


@formula("OneHot", since=11)
def one_hot_11(op: Op, indices: Value, depth: Value, values: Value, *, axis: int) -> Value:
    """Indices and `axis` are counted from the front.

    What changes: depth is added to negative indices, and a negative axis other than -1 is replaced. Indices that are known not to
    be negative stay.

    Why equal: below version 11 an index outside of [0, depth) gives a row of off values (onnx/defs/tensor/old.cc). Indices
    below -depth stay negative.
    """
    front = {"axis": axis + indices.need_rank() + 1} if axis < -1 else {}
    known = indices.constant
    if known is not None and bool((known >= 0).all()):
        return op.itself(indices, depth, values, **front)
    dtype = indices.need_dtype()
    if dtype in (_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64):
        return op.itself(indices, depth, values, **front)
    # Fractions are cut off before the comparison, as the operator does.
    whole = indices if dtype == _T.INT32 else indices.cast(_T.INT64)
    of_type = whole.need_dtype()
    below = (whole < 0).cast(of_type)
    size = op.Reshape(depth.cast(of_type), [])
    return op.itself((whole + below * size).cast(dtype), depth, values, **front)


@formula("OneHot", since=9)
def one_hot(op: Op, indices: Value, depth: Value, values: Value, *, axis: int) -> Value:
    """There is no OneHot: the indices are compared with 0, 1, 2 … and Gather takes the values.

    Why equal: an element is the on value where its place on the new axis is the index. Values are moved, never computed with.
    """
    rank = indices.need_rank()
    axis %= rank + 1
    size = depth.cast(_T.INT64).reshape(1)
    places = along(op.iota(size), axis, rank + 1)
    given = op.Unsqueeze(indices.cast(_T.INT64), [axis])
    return op.Gather(values, (given == places).cast(_T.INT64), axis=0)
