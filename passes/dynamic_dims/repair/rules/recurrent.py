"""Repair rules of LSTM, GRU, RNN and ReverseSequence: initial states and sequence lengths for each item."""

from __future__ import annotations

import numpy as np

from ..domain import Dim, Value
from ..domain.value import dtype_of
from ..graph_state import UnknownLength
from ..node_context import NodeContext
from ..operand_edits import expand_operand

__all__ = ["recurrent", "reverse_sequence"]


def recurrent(context: NodeContext) -> None:
    """Expand the initial states and the sequence lengths of an LSTM, GRU or RNN along the batch.

    Initial states are inputs 5 and, of an LSTM, 6; sequence lengths are input 4.
    """
    dims = context.dims(0)
    if dims is None or len(dims) != 3:
        return
    layout = context.attributes.get("layout", 0)
    batch = dims[0 if layout else 1]
    if batch is None or not batch.varies:
        return
    for index in (5, 6) if context.node.op_type.endswith("LSTM") else (5,):
        expand_operand(context, index, 0 if layout else 1, batch)
    _read_whole_length(context, 4, dims[1 if layout else 0])
    expand_operand(context, 4, 0, batch)


def reverse_sequence(context: NodeContext) -> None:
    """Expand the sequence lengths of a ReverseSequence along the batch, and read them from the time axis."""
    dims = context.dims(0)
    if dims is None:
        return
    _read_whole_length(context, 1, dims[context.attributes.get("time_axis", 0)])
    batch = dims[context.attributes.get("batch_axis", 1)]
    if batch is not None and batch.varies:
        expand_operand(context, 1, 0, batch)


def _read_whole_length(context: NodeContext, index: int, time: Dim | None) -> None:
    """Replace constant sequence lengths that equal the length of the time axis by that axis's length."""
    value = context.input(index)
    array = value.constant() if value is not None else None
    if value is None or array is None or not array.size or time is None or not time.varies:
        return
    if (array != time.frozen).any():
        context.refuse(
            f"its constant sequence lengths are not the length of the time axis, {time.frozen}, and that axis changes"
            f" with {context.symbols_in(time)}",
            index,
        )
    try:
        name = context.graph_state.emit_shape(context.rw, [time], context.node.input[:1])
    except UnknownLength:
        context.refuse_unknown_length(index)
    if array.dtype != np.int64:
        name = context.rw.before("Cast", [name], hint="lengths", to=dtype_of(array))
    if array.size > 1:
        shape = context.rw.constant(np.array(array.shape, np.int64), "items")
        name = context.rw.before("Expand", [name, shape], hint="lengths")
    reason = f"sequence lengths {time.frozen} → {context.name_of(time)}, the length of the time axis"
    context.replace_input(index, name, Value(dtype_of(array), value.dims), reason)
