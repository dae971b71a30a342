"""Notes in the report on each symbol: the axes of inputs and outputs it stands for, and how many nodes depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["note_symbols"]


def note_symbols(
    model: Model, symbol_use: Mapping[str, tuple[int, int]], log: ChangeLog, pass_name: str
) -> None:
    """Note each symbol of `symbol_use`, which holds the number of nodes with such an axis, and of all nodes."""
    graph = model.proto.graph
    for symbol, (through, nodes) in symbol_use.items():
        inputs, outputs = _axes_of(symbol, graph.input), _axes_of(symbol, graph.output)
        log.note(
            pass_name,
            "flow",
            f"{symbol}: {inputs} → {outputs or 'no output'}, as it is an axis of what {through} of {nodes} nodes give",
            subject=symbol,
        )


def _axes_of(symbol: str, values: Iterable[onnx.ValueInfoProto]) -> str:
    return ", ".join(
        f"{value.name}[{axis}]"
        for value in values
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param == symbol
    )
