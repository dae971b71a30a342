"""The table of repair rules, by operator.

A rule gets the context of one node and edits the node so that its outputs are right at all sizes. It returns the
values of the outputs where it knows more of them than onnx's inference, else None. It raises UnrepairableNode where
nothing it can write is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..domain import Value
from ..node_context import NodeContext
from .broadcast import attention, broadcast, concat, gather_elements, grid_sample, matmul, normalization
from .expand_and_fill import constant_of_shape, expand, range_, tile
from .gather_scatter import gather_nd, gather_rows, scatter_nd
from .index_constants import positions, positions_in_any_input
from .pool import pool
from .recurrent import recurrent, reverse_sequence
from .reshape import flatten, reshape
from .resize import resize
from .slice_split import slice_, split
from .squeezed_batch import gather_item, squeeze, unsqueeze

__all__ = ["APPLIED_TO_CONSTANTS", "RULES", "RUNTIME_RULES", "RepairRule"]

RepairRule = Callable[[NodeContext], list[Value] | None] | Callable[[NodeContext], None]


_COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})


def _gather(context: NodeContext) -> list[Value] | None:
    found = gather_item(context)
    if found is None:
        positions(context, 1)
        gather_rows(context)
    return found


def _gather_elements(context: NodeContext) -> None:
    positions(context, 1)
    gather_elements(context)


def _broadcast(context: NodeContext) -> None:
    positions_in_any_input(context)
    broadcast(context)


RULES: Mapping[str, RepairRule] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "AveragePool": pool,
    "MaxPool": pool,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Tile": tile,
    "ConstantOfShape": constant_of_shape,
    "Range": range_,
    "Gather": _gather,
    "Slice": slice_,
    "Split": split,
    "Resize": resize,
    "Concat": concat,
    "GatherND": gather_nd,
    "ScatterND": scatter_nd,
    "GridSample": grid_sample,
    "GatherElements": _gather_elements,
    "ScatterElements": gather_elements,
    "MatMul": matmul,
    "Attention": attention,
    "LSTM": recurrent,
    "GRU": recurrent,
    "RNN": recurrent,
    "ReverseSequence": reverse_sequence,
    "BatchNormalization": normalization,
    **dict.fromkeys(("Add", "Sub", "Mul"), _broadcast),
    **dict.fromkeys(_COMPARISONS, positions_in_any_input),
    **dict.fromkeys(("Div", "Pow", "Where", "Min", "Max", "Sum", "And", "Or"), broadcast),
}

RUNTIME_RULES: Mapping[str, RepairRule] = {
    "FusedMatMul": matmul,
    "DynamicQuantizeLSTM": recurrent,
}
"""The rules of ONNX Runtime's own operators, in the domain com.microsoft."""


APPLIED_TO_CONSTANTS = _COMPARISONS | {
    "ConstantOfShape", "Range", "Slice", "Expand", "Tile", "Gather", "GatherElements", "Add", "Sub", "Mul",
}  # fmt: skip
"""Operators whose rules apply to nodes of constant inputs as well: their output may have to vary."""
