"""Which function mends which operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..domain import Value
from ..node_context import Place
from .broadcast import broadcast, concat, elements, grid, normalization, product, recurrent, reverse
from .expand_and_fill import constant_of_shape, expand, range_, tile
from .gather_scatter import gather_nd, rows, scatter_nd
from .index_constants import positions, positions_of_any
from .pool import pool
from .reshape import flatten, reshape
from .resize import resize
from .slice_split import slice_, split
from .squeezed_batch import item, squeeze, unsqueeze

__all__ = ["MENDERS", "OF_CONSTANTS", "Mender"]

Mender = Callable[[Place], list[Value] | None] | Callable[[Place], None]


_COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})


def _gather(place: Place) -> list[Value] | None:
    found = item(place)
    if found is None:
        positions(place, 1)
        rows(place)
    return found


def _gather_elements(place: Place) -> None:
    positions(place, 1)
    elements(place)


def _broadcast(place: Place) -> None:
    positions_of_any(place)
    broadcast(place)


MENDERS: Mapping[str, Mender] = {
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
    "GridSample": grid,
    "GatherElements": _gather_elements,
    "ScatterElements": elements,
    "MatMul": product,
    "LSTM": recurrent,
    "GRU": recurrent,
    "RNN": recurrent,
    "ReverseSequence": reverse,
    "BatchNormalization": normalization,
    **dict.fromkeys(("Add", "Sub", "Mul"), _broadcast),
    **dict.fromkeys(_COMPARISONS, positions_of_any),
    **dict.fromkeys(("Div", "Pow", "Where", "Min", "Max", "Sum", "And", "Or"), broadcast),
}


OF_CONSTANTS = _COMPARISONS | {
    "ConstantOfShape", "Range", "Slice", "Expand", "Tile", "Gather", "GatherElements", "Add", "Sub", "Mul",
}  # fmt: skip
"""Operators that are mended although nothing that moves goes in: what comes out may have to."""
