"""GatherElements and GatherND: below opset 11 elements are gathered by their number in the flattened data."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.analysis.value_types import ValueType
from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.plural import count_of
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import integers, reduce, squeeze
from .flat_index import Dims, along, non_negative, to_int64


@lowering("GatherElements", leaves=11)
def gather_elements_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no GatherElements: Gather takes the elements of the flattened data by their number.

    What changes: the number of an element is its index times the stride of `axis`, and the place in each other axis times
    the stride of that. Strides are computed from the data's shape. Negative indices count from the end of the axis.

    Why equal: out[i][j] = data[index[i][j]][j] (onnx/defs/tensor/defs.cc). Values are moved, never computed with.

    Limits: the rank of the data must be known.
    """
    data = rw.input(0)
    number = element_numbers(rw, int(rw.get("axis", 0)))
    if rw.need_rank(data) > 1:
        data = rw.before("Reshape", [data, integers(rw, -1)], hint="flat")
    rw.rename("Gather")
    rw.set("axis", 0)
    rw.set_input(0, data)
    rw.set_input(1, number)


@lowering("GatherND", leaves=12)
def gather_nd_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`batch_dims` does not exist: the places in the batch axes are put in front of the indices.

    What changes: a counter of each batch axis becomes a further column of the indices. Without batch axes, nothing.

    Why equal: with batch_dims b, the indices apply to data[i] for each place i in the first b axes, which both inputs share.

    Limits: the rank of the indices must be known if there are batch axes.
    """
    batch = int(rw.pop("batch_dims", 0))
    if batch == 0:
        return
    indices = rw.input(1)
    dims = Dims(rw, indices)
    rank = dims.rank
    if not 0 < batch < rank:
        rw.refuse(f"has batch_dims={batch}, and indices of {count_of(rank, 'axis')}", code="invalid-node")
    rows = rw.before("Concat", [dims.some(range(rank - 1)), integers(rw, 1)], hint="rows", axis=0)
    columns = [
        rw.before("Expand", [along(rw, dims.places(axis), axis, rank), rows], hint="batch")
        for axis in range(batch)
    ]
    whole = rw.before("Concat", [*columns, indices], hint="indices", axis=rank - 1)
    shape = rw.shape(indices) or ()
    count = shape[-1]
    longer = ValueType(TensorProto.INT64, (*shape[:-1], None if count is None else count + batch))
    rw.scope.record_type(whole, longer)
    rw.set_input(1, whole)


@lowering("GatherND", leaves=11)
def gather_nd_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """There is no GatherND: Gather takes rows of the data, whose first axes are flattened, by their number.

    What changes: the number of a row is the sum of each index times the stride of its axis. Negative indices count from the
    end of their axis.

    Why equal: an index of q numbers selects a row of the first q axes (onnx/defs/tensor/defs.cc). Values are moved, never
    computed with.

    Limits: the rank of the data, the rank of the indices, and their last dim or the rank of the result must be known. Data in
    which an axis after the first q is empty are refused by Reshape when the model runs.
    """
    data = rw.input(0)
    count = index_length(rw, rw.input(1))
    sizes = Dims(rw, data)
    number = row_numbers(rw, rw.input(1), count, sizes)
    if count > 1 or sizes.rank == 1:
        rest = range(count, sizes.rank)
        shape = integers(rw, -1)
        if rest:
            shape = rw.before("Concat", [shape, sizes.some(rest)], hint="rows", axis=0)
        data = rw.before("Reshape", [data, shape], hint="rows")
    rw.rename("Gather")
    rw.set("axis", 0)
    rw.set_input(0, data)
    rw.set_input(1, number)


def element_numbers(rw: LoweringRewriter, axis: int) -> str:
    """Return the number in the flattened first input of the element that each index, the second input, selects."""
    sizes = Dims(rw, rw.input(0))
    rank = sizes.rank
    axis %= max(rank, 1)
    number = non_negative(rw, to_int64(rw, rw.input(1)), sizes.some([axis]))
    if rank == 1:
        return number
    places = Dims(rw, rw.input(1))
    offset = ""
    for other in range(rank):
        if other == axis:
            continue
        part = along(rw, places.places(other), other, rank)
        if other < rank - 1:
            part = rw.before("Mul", [part, sizes.product(range(other + 1, rank))], hint="offset")
        offset = rw.before("Add", [offset, part], hint="offset") if offset else part
    if axis < rank - 1:
        number = rw.before("Mul", [number, sizes.product(range(axis + 1, rank))], hint="number")
    return rw.before("Add", [number, offset], hint="number")


def index_length(rw: LoweringRewriter, indices: str) -> int:
    """Return how many axes of the first input an index selects in: the last dim of the indices, or what the ranks say of it.

    The rows that ScatterND is given as updates, and those that GatherND returns, have one axis for each of the others.
    """
    rank = rw.need_rank(indices)
    shape = rw.shape(indices)
    count = shape[rank - 1] if shape and rank else None
    rows = rw.rank(rw.input(2) or rw.output(0))
    if count is None and rows is not None:
        count = rw.need_rank(rw.input(0)) + rank - 1 - rows
    if not count or count < 0:
        rw.refuse(
            f"the last dim of {indices!r}, which says how many axes are indexed, must be known below opset"
            f" {rw.version + 1}, and the shape is {list(shape or ())}",
            code="needs-shape",
            hint=f"declare the shape of {indices!r} in the value_info of the model",
        )
    axes = rw.rank(rw.input(0))
    if axes is not None and count > axes:
        rw.refuse(
            f"its indices {indices!r} index {count} axes, and {rw.input(0)!r} has {axes}", code="invalid-node"
        )
    return count


def row_numbers(rw: LoweringRewriter, indices: str, count: int, sizes: Dims) -> str:
    """Return the number of the row that each index of `count` numbers selects; the last axis of the indices goes."""
    last = rw.need_rank(indices) - 1
    indices = non_negative(rw, indices, sizes.some(range(count)))
    if count == 1:
        return squeeze(rw, indices, [last])
    parts = rw.before("Mul", [indices, sizes.strides(count)], hint="parts")
    return reduce(rw, "ReduceSum", parts, [last], keepdims=False)
