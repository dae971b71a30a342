"""Notes in the report on each symbol: the axes of inputs and outputs it stands for, and how many nodes depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog

from .output_dims import OutputDims

__all__ = ["note_symbols"]


def note_symbols(
    model: Model,
    symbol_use: Mapping[str, tuple[int, int]],
    outputs: OutputDims,
    log: ChangeLog,
    pass_name: str,
) -> None:
    """Note each symbol of `symbol_use`, which holds the number of nodes that output such an axis, and of all nodes."""
    graph = model.proto.graph
    for symbol, (through, nodes) in symbol_use.items():
        equal = _axes_of(symbol, graph.output)
        computed = [f"{name}[{axis}]" for name, axis in outputs.computed.get(symbol, ())]
        if computed:
            computed[-1] += f" (computed from {symbol})"
        nowhere = "no output axis" if outputs.complete else "no output axis, as far as shape inference shows"
        log.note(
            pass_name,
            "flow",
            f"{symbol}: {', '.join(_axes_of(symbol, graph.input))} → {', '.join([*equal, *computed]) or nowhere};"
            f" {through} of {nodes} nodes output an axis of this length",
            subject=symbol,
        )


def _axes_of(symbol: str, values: Iterable[onnx.ValueInfoProto]) -> list[str]:
    return [
        f"{value.name}[{axis}]"
        for value in values
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param == symbol
    ]
