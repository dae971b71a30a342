"""Notes in the report on each symbol: the axes of inputs and outputs it stands for, and how many nodes depend on it."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from onnx_migrate.rewrite.change_log import ChangeLog

from .output_dims import OutputDims
from .repair import RepairResult

__all__ = ["note_symbols"]


def note_symbols(result: RepairResult, outputs: OutputDims, log: ChangeLog, pass_name: str) -> None:
    """Note of each symbol where it occurs: `outputs` is from shape inference; what that leaves open, from `result`."""
    graph = result.model.proto.graph
    computed = {symbol: list(axes) for symbol, axes in outputs.computed.items()}
    open_axes = False
    for name, axis in outputs.unknown:
        axes = result.output_symbols.get(name, [])
        symbols = axes[axis] if axis < len(axes) else None
        open_axes |= symbols is None
        for symbol in symbols or ():
            computed.setdefault(symbol, []).append((name, axis))
    nowhere = "no output axis, as far as shape inference shows" if open_axes else "no output axis"
    for symbol, (changing, nodes) in result.symbol_use.items():
        equal = _axes_of(symbol, graph.output)
        others = [
            text
            for text in (f"{name}[{axis}]" for name, axis in computed.get(symbol, ()))
            if text not in equal
        ]
        if others:
            others[-1] += f" (computed from {symbol})"
        log.note(
            pass_name,
            "flow",
            f"{symbol}: {', '.join(_axes_of(symbol, graph.input))} → {', '.join([*equal, *others]) or nowhere};"
            f" the outputs of {changing} of {nodes} nodes change with it",
            subject=symbol,
        )


def _axes_of(symbol: str, values: Iterable[onnx.ValueInfoProto]) -> list[str]:
    return [
        f"{value.name}[{axis}]"
        for value in values
        for axis, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param == symbol
    ]
